import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { StaleFenceException, type FenceGate, type StaleFence } from 'nestjs-lease';

export interface GateUnderTest {
  readonly gate: FenceGate;
  /** As the gate, in the store where it remembers: as another process has it. */
  another(): FenceGate;
}

let serial = 0;
/** A resource that no other test has written to. */
export const aResource = (name = 'resource'): string => `${name} ${++serial}`;

/** A fence as a store would give it now. */
export const aFence = (): number => Date.now() * 1_000 + (serial++ % 1_000);

/** What every gate promises, wherever it remembers. */
export function describeFenceGate(name: string, using: () => GateUnderTest): void {
  describe(`a fence gate in ${name}`, () => {
    it('admits fences that grow, and one that comes again', async () => {
      const { gate } = using();
      const resource = aResource();
      const fence = aFence();
      for (const next of [fence, fence, fence + 1, fence + 1, fence + 1_000_000]) {
        await expect(gate.admit(resource, next)).resolves.toBeUndefined();
      }
    });

    it('refuses a fence below the highest it has seen, and names both', async () => {
      const { gate } = using();
      const resource = aResource();
      const fence = aFence();
      await gate.admit(resource, fence);
      const told: StaleFence[] = [];
      const heard = gate.stale$.subscribe((stale) => told.push(stale));
      const refusal = await gate.admit(resource, fence - 1).catch((error: unknown) => error);
      heard.unsubscribe();
      expect(refusal).toBeInstanceOf(StaleFenceException);
      expect(refusal).toMatchObject({ resource, fence: fence - 1, highest: fence });
      expect((refusal as StaleFenceException).getStatus()).toBe(409);
      expect((refusal as StaleFenceException).getResponse()).toMatchObject({
        code: 'STALE_FENCE',
        key: resource,
        fence: fence - 1,
        highest: fence,
      });
      expect(told).toEqual([{ key: resource, resource, fence: fence - 1, highest: fence }]);
    });

    it('is not moved by what it refused', async () => {
      const { gate } = using();
      const resource = aResource();
      const fence = aFence();
      await gate.admit(resource, fence);
      await expect(gate.admit(resource, fence - 5)).rejects.toBeInstanceOf(StaleFenceException);
      await expect(gate.admit(resource, fence - 1)).rejects.toMatchObject({ highest: fence });
      await expect(gate.admit(resource, fence)).resolves.toBeUndefined();
    });

    it('keeps resources apart, whatever they are called', async () => {
      const { gate } = using();
      const names = [
        'a',
        'a:b',
        '{a}',
        '{a}b',
        '{a}{b}',
        'a}b',
        '{}a',
        'ä"\'; --',
        'a%7Bb',
        '$1 ? :x',
        '名前',
      ];
      const resources = names.map((each) => `${aResource()} ${each}`);
      const fence = aFence();
      for (const [i, resource] of resources.entries()) await gate.admit(resource, fence + i);
      for (const [i, resource] of resources.entries()) {
        await expect(gate.admit(resource, fence + i - 1)).rejects.toMatchObject({
          highest: fence + i,
        });
        await gate.admit(resource, fence + i);
      }
    });

    it('remembers for all processes', async () => {
      const { gate, another } = using();
      const resource = aResource();
      const fence = aFence();
      await gate.admit(resource, fence);
      await expect(another().admit(resource, fence - 1)).rejects.toMatchObject({ highest: fence });
      await another().admit(resource, fence + 1);
      await expect(gate.admit(resource, fence)).rejects.toMatchObject({ highest: fence + 1 });
    });

    it('begins nothing with a fence that is older than half of its retention', async () => {
      const { gate } = using();
      const day = 86_400_000_000;
      const old = aFence() - 46 * day;
      const refusal = await gate.admit(aResource(), old).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(StaleFenceException);
      expect((refusal as Error).message).toContain('too old');
      await expect(gate.admit(aResource(), aFence() - 44 * day)).resolves.toBeUndefined();
    });

    it('says of a fence that is no time, as a revision of etcd is none, what its gate needs', async () => {
      const { gate } = using();
      await expect(gate.admit(aResource(), 1_234)).rejects.toThrow('{ retention: Infinity }');
    });

    it.each([0, -1, 1.5, NaN, Infinity, 2 ** 53, '5', null, {}, [], true])(
      'says of %p that it is no fence',
      async (bad) => {
        const { gate } = using();
        await expect(gate.admit(aResource(), bad as number)).rejects.toThrow(/^The fence is /);
      },
    );

    it.each([
      ['', 'is empty'],
      ['a\nb', 'control character'],
      ['x'.repeat(513), 'longer than 512 bytes'],
      [7, 'is not a string'],
    ])('says of %p that it is no resource', async (bad, why) => {
      const { gate } = using();
      await expect(gate.admit(bad as string, aFence())).rejects.toThrow(why);
    });

    it('in any interleaving of admissions, what is accepted for a resource never goes down', async () => {
      const admission = fc.record({
        resource: fc.constantFrom('a', 'b'),
        step: fc.integer({ min: 0, max: 4 }),
        through: fc.boolean(),
        at: fc.integer({ min: 0, max: 3 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(admission, { maxLength: 12 }), async (story) => {
          const { gate, another } = using();
          const gates = [gate, another()];
          const round = aResource('round');
          const base = aFence();
          const accepted = new Map<string, number>();
          // Those of the same moment are sent together: which of them is first is the store's to say.
          for (const moment of [0, 1, 2, 3]) {
            const together = story.filter(({ at }) => at === moment);
            const before = new Map(accepted);
            await Promise.all(
              together.map(async ({ resource, step, through }) => {
                const fence = base + step;
                try {
                  await gates[Number(through)]!.admit(`${round} ${resource}`, fence);
                  // Nothing below what was accepted before this moment began.
                  expect(fence).toBeGreaterThanOrEqual(before.get(resource) ?? 0);
                  accepted.set(resource, Math.max(accepted.get(resource) ?? 0, fence));
                } catch (error) {
                  expect(error).toBeInstanceOf(StaleFenceException);
                  // It was refused for a fence that is higher, and one that was really there.
                  const { highest } = error as StaleFenceException;
                  expect(highest).toBeGreaterThan(fence);
                  const known = together.filter((one) => one.resource === resource);
                  expect([before.get(resource), ...known.map((one) => base + one.step)]).toContain(
                    highest,
                  );
                }
              }),
            );
          }
          // The highest of all is accepted again, and nothing below it.
          for (const [resource, highest] of accepted) {
            await gate.admit(`${round} ${resource}`, highest);
            await expect(gate.admit(`${round} ${resource}`, highest - 1)).rejects.toMatchObject({
              highest,
            });
          }
        }),
        { numRuns: 60 },
      );
    });
  });
}
