import { expect } from '@jest/globals';
import * as fc from 'fast-check';
import { StaleFenceException } from 'nestjs-lease';
import { aFence, aResource } from './gate-suite.js';

/** A store with a gate, and what came through it in the order in which the store took it. */
export interface Journal {
  /** Admits and writes down, in one step of the store. */
  write(resource: string, fence: number): Promise<unknown>;
  written(resource: string): Promise<readonly number[]>;
  /** Leaves a mark as it would be, had its last write been when its fence was given; none if it is retired by now. */
  leave(resource: string, fence: number): Promise<unknown>;
  /** Retires what is to be retired, where the store does not by itself. */
  retire(): Promise<unknown>;
}

export const HALF_A_DAY = 43_200_000_000;

/** Of the gates under test. A fence that is older than half of it begins nothing. */
export const RETENTION = '2d';
const FLOOR = 2 * HALF_A_DAY;

interface Moment {
  /** In half days. */
  readonly age: number;
  /** To tell fences of one age apart. */
  readonly bit: number;
}

const MOMENT: fc.Arbitrary<Moment> = fc.record({ age: fc.nat(6), bit: fc.nat(4) });

/** Writes that are sent together, some rounds of them, to a resource that may have been written to before. */
const storyOf = (together: number) =>
  fc.record({
    before: fc.option(MOMENT),
    rounds: fc.array(fc.array(MOMENT, { minLength: 1, maxLength: together }), {
      minLength: 1,
      maxLength: 3,
    }),
  });

/** The clock of the store stands a quarter of a day after each: never on a border. */
const isKept = (mark: Moment | null): boolean => mark !== null && mark.age <= 4;

/**
 * For any interleaving that the store makes of admissions and retirements: what it accepts of a resource never goes
 * down, nothing is refused without a reason, and the last one may come again.
 */
export const acceptedFencesNeverGoDown = (journal: Journal, { together = 6 } = {}) =>
  fc.asyncProperty(storyOf(together), async ({ before, rounds }) => {
    const resource = aResource('of a story');
    const now = aFence() + HALF_A_DAY / 2;
    const fenceOf = ({ age, bit }: Moment): number => now - age * HALF_A_DAY + bit;
    const first = before === null ? undefined : fenceOf(before);
    if (first !== undefined) await journal.leave(resource, first);
    const sent: number[] = [];
    for (const round of rounds) {
      const fences = round.map(fenceOf);
      sent.push(...fences);
      const [, ...outcomes] = await Promise.allSettled([
        journal.retire(),
        ...fences.map((fence) => journal.write(resource, fence)),
      ]);
      for (const [i, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') continue;
        expect(outcome.reason).toBeInstanceOf(StaleFenceException);
        expect(outcome.reason.highest).toBeGreaterThan(fences[i]!);
      }
    }
    const written = await journal.written(resource);
    const accepted = first === undefined ? written : [first, ...written];
    expect(accepted).toEqual(accepted.toSorted((a, b) => a - b));
    const highest = Math.max(...sent);
    const isAbove = highest >= (first ?? 0);
    if (isAbove && (highest >= now - FLOOR || isKept(before))) expect(written.at(-1)).toBe(highest);
    // A mark that is to be retired counts for as long as it is there.
    if (!isAbove || (first === undefined && highest < now - FLOOR)) expect(written).toEqual([]);
    const last = written.at(-1);
    if (last === undefined) return;
    await journal.write(resource, last);
    await expect(journal.write(resource, last - 1)).rejects.toBeInstanceOf(StaleFenceException);
    expect(await journal.written(resource)).toEqual([...written, last]);
  });
