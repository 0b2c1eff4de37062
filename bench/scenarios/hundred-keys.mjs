import { FLOOR } from '../contestants/index.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { perSecond, ratio } from '../report/format.mjs';

const KEYS = 100;

export default {
  id: 'hundred-keys',
  title: `${KEYS} keys at once`,
  about: `${KEYS} loops in one process, each with a key of its own, over the connection that each library has. More is better.`,

  async run(bench) {
    const { entrants, fleet } = await bench.cyclists(FLOOR.cycle);
    const plan = bench.plan({ rounds: 15, warmup: 1, ms: 150 }, { rounds: 5, warmup: 1, ms: 50 });
    const byName = await interleave(entrants, plan, (entrant) =>
      fleet.of(entrant)[0].do('cyclesOnManyKeys', fleet.opened(entrant), {
        key: entrant.name,
        keys: KEYS,
        ms: plan.ms,
      }),
    );
    await bench.dismissCyclists();
    return bench.rows(against(FLOOR.cycle, byName, ({ us, count }) => (1e6 * count) / us));
  },

  tables: (rows) => [
    {
      columns: ['', 'cycles per second', '× floor', 'p10–p90'],
      rows: rows.map((row) => [row.name, perSecond(row.value), ...ratio(row.ratio)]),
    },
  ],
};
