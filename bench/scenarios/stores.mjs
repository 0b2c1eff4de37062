import { contestants, OURS } from '../contestants/index.mjs';
import { stores } from '../contestants/stores.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { microseconds, perSecond, ratio } from '../report/format.mjs';
import { measureWaiters } from './waiters.mjs';

const BESIDE = 'redis';
const WAITERS = 20;

export default {
  id: 'stores',
  title: 'Each store beside Redis',
  about: `run() on every store: one caller, 100 keys at once, ${WAITERS} waiters in one process. PostgreSQL and etcd write to the disk before they answer, Redis and Redlock do not; all of them run on this machine. Ratios are to Redis.`,
  isLong: true,

  async run(bench) {
    const redis = await bench.redis();
    const others = [await bench.redis(), await bench.redis()];
    const [postgres, etcd] = [await bench.postgres(), await bench.etcd()];
    const ours = contestants.find(({ name }) => name === OURS.run);
    const entrants = Object.keys(stores).map((store) => ({
      ...ours,
      name: store,
      file: `${ours.file}?store=${store}`,
      options: { ...ours.options, store },
    }));
    const fleet = await bench.fleet(entrants, {
      port: redis.port,
      nodes: [redis, ...others].map(({ port }) => port),
      postgres: postgres.url,
      etcd: etcd.url,
    });
    await bench.warmUp(fleet, entrants, 500);
    const plan = bench.plan({ rounds: 9, warmup: 1, ms: 80 }, { rounds: 3, warmup: 1, ms: 30 });
    const on = (job, params) => (entrant) =>
      fleet.of(entrant)[0].do(job, fleet.opened(entrant), {
        ...params,
        ms: plan.ms,
      });
    const sequential = await interleave(entrants, plan, on('cycles', { key: 'one' }));
    const many = await interleave(entrants, plan, on('cyclesOnManyKeys', { key: 'k', keys: 100 }));
    const waiting = await interleave(entrants, plan, (entrant, round) =>
      measureWaiters(fleet, entrant, {
        key: `waiting:${round}`,
        processes: 1,
        waiters: WAITERS,
        turnsEach: 20,
        capMs: 5_000,
      }),
    );
    return {
      sequential: bench.rows(against(BESIDE, sequential, ({ us, count }) => us / count)),
      many: bench.rows(against(BESIDE, many, ({ us, count }) => (1e6 * count) / us)),
      waiting: bench.rows(against(BESIDE, waiting, ({ usPerTurn }) => usPerTurn)),
    };
  },

  tables: ({ sequential, many, waiting }) => [
    {
      columns: [
        '',
        'µs per cycle',
        '× Redis',
        'p10–p90',
        '100 keys, cycles per second',
        '× Redis',
        'p10–p90',
        'µs per turn of 20 waiters',
        '× Redis',
        'p10–p90',
      ],
      rows: sequential.map((row, i) => [
        row.name,
        microseconds(row.value),
        ...ratio(row.ratio),
        perSecond(many[i].value),
        ...ratio(many[i].ratio),
        microseconds(waiting[i].value),
        ...ratio(waiting[i].ratio),
      ]),
    },
  ],
};
