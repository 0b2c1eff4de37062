import { beforeEach, describe, expect, it } from '@jest/globals';
import { Sweeper } from '../../../../lib/stores/postgres/sweeper.js';
import { settle, VirtualClock } from '../../../support/virtual-clock.js';

const FIVE_MINUTES = 300_000;

describe('What nobody needs any more is swept', () => {
  let clock: VirtualClock;
  /** How many each sweep was to forget at most. */
  let asked: number[];
  let forgotten: () => Promise<number>;
  let sweeper: Sweeper;

  const start = (random: number): void => {
    const sweep = (atMost: number): Promise<number> => {
      asked.push(atMost);
      return forgotten();
    };
    sweeper = new Sweeper(sweep, clock, () => random);
  };
  /** A grant, and what follows from it. */
  const grant = async (): Promise<void> => {
    sweeper.now();
    await settle();
  };

  beforeEach(() => {
    clock = new VirtualClock();
    asked = [];
    forgotten = async () => 0;
  });

  it('first at a moment of each process’ own, at most five minutes after its start', async () => {
    start(0.5);
    await grant();
    await clock.advance(FIVE_MINUTES / 2 - 1);
    await grant();
    expect(asked).toEqual([]);
    await clock.advance(1);
    await grant();
    expect(asked).toEqual([1_000]);
  });

  it('every five minutes at most, and only where something is granted', async () => {
    start(0);
    await grant();
    await grant();
    await clock.advance(FIVE_MINUTES - 1);
    await grant();
    expect(asked).toHaveLength(1);
    await clock.advance(10 * FIVE_MINUTES);
    expect(asked).toHaveLength(1);
    expect(clock.timers).toBe(0);
    await grant();
    await grant();
    expect(asked).toHaveLength(2);
  });

  it('with the next grant where there was more than fits in once', async () => {
    start(0);
    forgotten = async () => 1_000;
    await grant();
    await grant();
    forgotten = async () => 999;
    await grant();
    await grant();
    expect(asked).toHaveLength(3);
  });

  it('by the next process or at the next time when it fails: nobody is told (rule 12)', async () => {
    start(0);
    forgotten = async () => {
      throw new Error('no');
    };
    await grant();
    await grant();
    expect(asked).toHaveLength(1);
    await clock.advance(FIVE_MINUTES);
    await grant();
    expect(asked).toHaveLength(2);
  });
});
