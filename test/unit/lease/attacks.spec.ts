import { describe, expect, it } from '@jest/globals';
import { Leadership } from '../../../lib/election/leadership.js';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import { PERMITS_ON_REENTRY } from '../../../lib/lease.messages.js';
import { Gate } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { deferred, outcome, TTL, World } from './world.js';

const microtasks = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await Promise.resolve();
};

/** How many microtasks a shutdown may come after a grant: more than there are between any two steps. */
const MOMENTS = Array.from({ length: 25 }, (_, i) => i);

describe('an attack', () => {
  it('does not make a permit an exclusive hold by entering it again (rule 1)', async () => {
    const { engine } = new World();
    const run = engine.run('k', () => engine.run('k', () => 'alone'), { permits: 2 });
    await expect(run).rejects.toThrow(new RangeError(PERMITS_ON_REENTRY('k', 2, 1)));
  });

  it.each(MOMENTS)(
    'by a shutdown %i microtasks after a grant starts no work that is not looked after (rule 11)',
    async (moment) => {
      const world = new World();
      const gate = new Gate();
      const work = deferred();
      const atEntry: boolean[] = [];
      world.store.next('acquire', gate.reply);
      void outcome(
        world.engine.run('k', async (lease) => {
          atEntry.push(lease.isHeld);
          await work.promise;
        }),
      );
      await settle();
      gate.open();
      await microtasks(moment);
      const closed = outcome(world.engine.close(0, 0));
      await world.clock.advance(1);
      // Never begun, or known to the shutdown as work that did not stop.
      expect(atEntry).toEqual(closed.value?.length === 1 ? [true] : []);
      work.resolve(undefined);
      await settle();
    },
  );

  it.each(MOMENTS)(
    'by a shutdown %i microtasks after a grant leaves no lease that nobody renews (rule 4)',
    async (moment) => {
      const world = new World();
      const gate = new Gate();
      world.store.next('acquire', gate.reply);
      const acquired = outcome(world.engine.acquire('k'));
      await settle();
      gate.open();
      await microtasks(moment);
      void outcome(world.engine.close(0, 0));
      await settle();
      expect(acquired.value?.isHeld ?? false).toBe(false);
    },
  );

  it('on one of several keys leaves the others to their ttl', async () => {
    const world = new World();
    const lease = await world.engine.acquire(['a', 'b']);
    await world.steal('a');
    await world.clock.advance(3 * TTL);
    expect(lease.isHeld).toBe(false);
    expect(await world.isTaken('b')).toBe(false);
  });

  it('by a failed re-entry does not take the minHold from the key that was entered', async () => {
    const world = new World();
    await world.occupy('z');
    await world.engine.run(
      'a',
      async () => {
        void outcome(world.engine.acquire(['a', 'z'], { wait: 1_000 }));
        await microtasks(20);
      },
      { minHold: '30s' },
    );
    await world.clock.advance(2_000);
    expect(await world.isTaken('a')).toBe(true);
  });

  it('by a pause between the grant and the work keeps the work from beginning (rule 4)', async () => {
    const world = new World();
    world.engine.events.all.subscribe(({ type }) => {
      if (type === 'acquired') queueMicrotask(() => world.clock.freeze(2 * TTL));
    });
    let began = false;
    const run = outcome(world.engine.run('k', () => (began = true)));
    await settle();
    expect([began, run.state]).toEqual([false, 'rejected']);
  });

  it('on a key whose loss is found at its release is not a result for who waits for that (rule 13)', async () => {
    const world = new World();
    const work = async (): Promise<string> => {
      await world.steal('k');
      return 'result';
    };
    const run = world.engine.run('k', work, { awaitRelease: true });
    await expect(run).rejects.toEqual(new LeaseLostException('k', 'taken'));
  });

  it('on a key whose loss is found at its release is told by its event to who does not wait (rule 7)', async () => {
    const world = new World();
    await world.engine.run('k', () => world.steal('k'));
    await settle();
    expect(world.of('released').map((event) => event.outcome)).toEqual(['lost']);
  });

  it('by an answer that throws when it is read is no answer (rule 12)', async () => {
    const world = new World();
    world.store.next('acquire', async () => ({
      granted: true,
      get fence(): number {
        throw new Error('boom');
      },
    }));
    await expect(world.engine.acquire('k')).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
    });
  });

  it('by a renewal that throws when it is read does not reach the release (rules 7 and 12)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    world.store.next('renew', async () =>
      Object.defineProperty(['renewed'], 0, {
        get: () => {
          throw new Error('boom');
        },
      }),
    );
    await world.clock.advance(TTL / 3);
    expect(world.events.map(({ type }) => type)).toContain('renewal-failed');
    expect(await lease.release()).toBe('released');
  });

  it('from inside a lease does not make an election part of it', async () => {
    const world = new World();
    const { engine } = world;
    const seen: unknown[] = [];
    const leadership = new Leadership('g', engine, {
      ttl: TTL,
      grace: 0,
      campaignWhen: () => {
        seen.push(engine.scope.current);
        return true;
      },
      onError: () => {},
      onStuck: () => {},
    });
    leadership.isLeader$.subscribe(() => seen.push(engine.scope.current));
    const end = deferred();
    const run = engine.run('k', async () => {
      leadership.start();
      await end.promise;
    });
    await world.clock.advance(TTL);
    expect(leadership.isLeader).toBe(true);
    expect(new Set(seen)).toEqual(new Set([undefined]));
    end.resolve(undefined);
    await run;
    await leadership.stop(0);
  });
});
