import { contestants, OURS } from '../contestants/index.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { microseconds, perSecond, ratio } from '../report/format.mjs';

const AS_IT_IS = 'as it is';

export default {
  id: 'pipelining',
  title: 'Auto-pipelining, as the user’s choice',
  about:
    'run() with and without `enableAutoPipelining: true` in the options of the Redis store. It sends the commands ' +
    'of one turn of the event loop together: a caller alone waits for that turn, many callers share the way.',
  isLong: true,

  async run(bench) {
    const redis = await bench.redis();
    const ours = contestants.find(({ name }) => name === OURS.run);
    const entrants = [
      { name: AS_IT_IS, client: {} },
      { name: 'enableAutoPipelining: true', client: { enableAutoPipelining: true } },
    ].map(({ name, client }, i) => ({
      ...ours,
      name,
      file: `${ours.file}?client=${i}`,
      options: { ...ours.options, client },
    }));
    const fleet = await bench.fleet(entrants, { port: redis.port });
    await bench.warmUp(fleet, entrants);
    const plan = bench.plan({ rounds: 15, warmup: 1, ms: 100 }, { rounds: 4, warmup: 1, ms: 40 });
    const on = (job, params) => (entrant) =>
      fleet.of(entrant)[0].do(job, fleet.opened(entrant), {
        ...params,
        key: entrant.name,
        ms: plan.ms,
      });
    const sequential = await interleave(entrants, plan, on('cycles'));
    const many = await interleave(entrants, plan, on('cyclesOnManyKeys', { keys: 100 }));
    return {
      sequential: bench.rows(against(AS_IT_IS, sequential, ({ us, count }) => us / count)),
      many: bench.rows(against(AS_IT_IS, many, ({ us, count }) => (1e6 * count) / us)),
    };
  },

  tables: ({ sequential, many }) => [
    {
      columns: [
        '',
        'µs per cycle, one caller',
        '×',
        'p10–p90',
        '100 keys, cycles per second',
        '×',
        'p10–p90',
      ],
      rows: sequential.map((row, i) => [
        row.name,
        microseconds(row.value),
        ...ratio(row.ratio),
        perSecond(many[i].value),
        ...ratio(many[i].ratio),
      ]),
    },
  ],
};
