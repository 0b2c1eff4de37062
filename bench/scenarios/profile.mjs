import { FLOOR } from '../contestants/index.mjs';
import { pin, unpin } from '../harness/cores.mjs';
import { cpuMicroseconds } from '../harness/cpu-time.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { median } from '../harness/statistics.mjs';
import { microseconds, ratio } from '../report/format.mjs';

const PARTS = ['user', 'system', 'redis'];

export default {
  id: 'profile',
  title: 'Where a cycle goes',
  about:
    'Processor time of Node and of Redis for each cycle of one caller, all on one core, where it adds up to the time of ' +
    'a cycle. "raw, our scripts" calls the scripts of this library by hand, with no library around them: what a fence, a ' +
    'deadline and a record of who has it cost in Redis and on the wire. What is above it is the library.',

  async run(bench) {
    const { entrants, redis, fleet } = await bench.cyclists(FLOOR.cycle);
    const present = entrants.filter(({ kind }) => kind !== 'peer');
    const plan = bench.plan({ rounds: 15, warmup: 1, ms: 120 }, { rounds: 5, warmup: 1, ms: 30 });
    pin([redis.pid, ...fleet.pids]);
    const byName = await interleave(present, plan, async (entrant) => {
      const before = cpuMicroseconds(redis.pid);
      const figures = await fleet.of(entrant)[0].do('cyclesProfiled', fleet.opened(entrant), {
        key: `${entrant.name}:one`,
        ms: plan.ms,
      });
      return { ...figures, redis: cpuMicroseconds(redis.pid) - before };
    });
    unpin([redis.pid, ...fleet.pids]);
    const rows = bench.rows(against(FLOOR.cycle, byName, ({ us, count }) => us / count));
    return rows.map((row) => {
      const rounds = byName.get(row.name);
      const part = (name) => median(rounds.map((figures) => figures[name] / figures.count));
      return { ...row, ...Object.fromEntries(PARTS.map((name) => [name, part(name)])) };
    });
  },

  tables: (rows) => [
    {
      columns: ['', 'µs per cycle', '× floor', 'p10–p90', 'Node, user', 'Node, system', 'Redis'],
      rows: rows.map((row) => [
        row.name,
        microseconds(row.value),
        ...ratio(row.ratio),
        ...PARTS.map((name) => microseconds(row[name])),
      ]),
    },
  ],
};
