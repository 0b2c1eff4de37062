import { describe, expect, it } from '@jest/globals';
import { describeFound, explore, simulateWatched } from './explore.js';
import { regressions } from './regressions.js';
import { scenarioFrom, type Mode } from './scenario.js';
import type { Report } from './simulated-world.js';

const RUNS_MAY_TAKE = 120_000;

/** The first violation in so many runs, in words, and all that was met on the way. */
async function exploring(mode: Mode, seeds: number): Promise<{ found: string; met: Set<string> }> {
  const met = new Set<string>();
  const onReport = ({ seen: { losses, outcomes, refusals, calls, handOvers } }: Report): void => {
    for (const name of Object.keys(losses)) met.add(`lost: ${name}`);
    for (const name of Object.keys(outcomes)) met.add(`release: ${name}`);
    for (const name of Object.keys(refusals)) met.add(`refused: ${name}`);
    for (const [name, count] of Object.entries(calls)) if (count > 0) met.add(`called: ${name}`);
    if (handOvers > 0) met.add('handed over');
  };
  const { found } = await explore({ from: 1, seeds, mode, onReport });
  return { found: found ? describeFound(found) : 'nothing', met };
}

describe('a simulated fleet', () => {
  it(
    'keeps the rules of a lease whatever its network, clocks, processes and store do',
    async () => {
      const { found, met } = await exploring('kept', 400);
      expect(found).toBe('nothing');
      // A simulation in which nothing goes wrong would pass too.
      expect([...met]).toEqual(
        expect.arrayContaining([
          ...['expired', 'taken', 'suspended', 'max-hold'].map((name) => `lost: ${name}`),
          ...['released', 'lost', 'unknown'].map((name) => `release: ${name}`),
          ...['granted', 'hints', 'strays'].map((name) => `called: ${name}`),
          'handed over',
          ...['held', 'done', 'unavailable', 'aborted', 'none'].map((name) => `refused: ${name}`),
        ]),
      );
    },
    RUNS_MAY_TAKE,
  );

  it(
    'has growing fences, ends every wait and leaves nothing behind when a lagging replica takes over',
    async () => {
      expect((await exploring('failover', 100)).found).toBe('nothing');
    },
    RUNS_MAY_TAKE,
  );

  it('is the same run for the same seed', async () => {
    const first = await simulateWatched(scenarioFrom(7));
    expect(await simulateWatched(scenarioFrom(7))).toEqual(first);
  });

  it.each(regressions)('found once, and not again: $name', async ({ scenario }) => {
    expect((await simulateWatched(scenario)).violation).toBeUndefined();
  });
});
