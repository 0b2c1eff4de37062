import { FLOOR } from '../contestants/index.mjs';
import { pin, unpin } from '../harness/cores.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { microseconds, ratio } from '../report/format.mjs';

const VARIANTS = [
  { id: 'pinned', title: 'Redis and Node on one core', job: 'cycles', isPinned: true },
  { id: 'free', title: 'Redis and Node on any core', job: 'cycles', isPinned: false },
  {
    id: 'callerPinned',
    title: 'What the caller waits for, on one core',
    job: 'callerWaits',
    isPinned: true,
  },
  {
    id: 'callerFree',
    title: 'What the caller waits for, on any core',
    job: 'callerWaits',
    isPinned: false,
  },
];

export default {
  id: 'sequential',
  title: 'One key, one caller: acquire and release',
  about:
    'Cycles one after the other on a key that nobody else wants. "What the caller waits for" times each call ' +
    'alone, with 300 µs between calls in which a release that was not waited for ends.',

  async run(bench) {
    const { entrants, redis, fleet } = await bench.cyclists(FLOOR.cycle);
    const plan = bench.plan({ rounds: 15, warmup: 1, ms: 120 }, { rounds: 5, warmup: 1, ms: 30 });
    const result = {};
    for (const { id, job, isPinned } of VARIANTS) {
      (isPinned ? pin : unpin)([redis.pid, ...fleet.pids]);
      const present = entrants.filter(({ kind }) => job === 'cycles' || kind !== 'peer');
      const byName = await interleave(present, plan, (entrant) =>
        fleet.of(entrant)[0].do(job, fleet.opened(entrant), {
          key: `${entrant.name}:one`,
          ms: plan.ms,
        }),
      );
      result[id] = bench.rows(against(FLOOR.cycle, byName, ({ us, count }) => us / count));
    }
    unpin([redis.pid, ...fleet.pids]);
    return result;
  },

  tables: (result) =>
    VARIANTS.map(({ id, title }) => ({
      title,
      columns: ['', 'µs per cycle', '× floor', 'p10–p90'],
      rows: result[id].map((row) => [row.name, microseconds(row.value), ...ratio(row.ratio)]),
    })),
};
