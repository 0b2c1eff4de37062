import { FLOOR, OURS } from '../contestants/index.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { microseconds, ratio } from '../report/format.mjs';
import { measureWaiters } from './waiters.mjs';

const HELD = [1, 10, 100, 1_000, 10_000];
const WAITERS = [2, 10, 50, 200];
const TTL = 10_000;

export default {
  id: 'growth',
  title: 'As the number of keys and of waiters grows',
  about:
    'A cycle on one more key while the same process holds and renews so many others; and the time per turn with so ' +
    'many waiters in one process. Ratios are to the smallest number, so that 1.00 means flat.',
  isLong: true,

  async run(bench) {
    const [ours] = bench.entrants('holding').filter(({ name }) => name === OURS.byHand);
    if (!ours) return { held: [], waiters: [] };
    return { held: await heldKeys(bench, ours), waiters: await waiters(bench) };
  },

  tables: ({ held, waiters }) => [
    {
      title: 'Keys held by the process',
      columns: ['keys held', 'µs per cycle', '× with 1', 'p10–p90'],
      rows: held.map(({ name, value, ratio: r }) => [name, microseconds(value), ...ratio(r)]),
    },
    ...Object.entries(grouped(waiters)).map(([of, rows]) => ({
      title: `Waiters: ${of}`,
      columns: ['waiters', 'µs per turn', `× with ${WAITERS[0]}`, 'p10–p90'],
      rows: rows.map(({ name, value, ratio: r }) => [name, microseconds(value), ...ratio(r)]),
    })),
  ],
};

/** A process for each number, all measured in turns. */
async function heldKeys(bench, ours) {
  const sizes = bench.plan(HELD, [1, 100, 1_000]);
  const redis = await bench.redis();
  const entrants = sizes.map((keys) => ({
    ...ours,
    name: String(keys),
    keys,
    file: `${ours.file}?held=${keys}`,
  }));
  const fleet = await bench.fleet(entrants, { port: redis.port });
  await bench.warmUp(fleet, entrants);
  const on = (entrant, job, params) => fleet.of(entrant)[0].do(job, fleet.opened(entrant), params);
  await Promise.all(
    entrants.map((entrant) =>
      on(entrant, 'takeMany', { key: `held:${entrant.name}`, keys: entrant.keys, ttl: TTL }),
    ),
  );
  const plan = bench.plan({ rounds: 15, warmup: 1, ms: 80 }, { rounds: 3, warmup: 1, ms: 30 });
  const byName = await interleave(entrants, plan, (entrant) =>
    on(entrant, 'cycles', { key: `more:${entrant.name}`, ms: plan.ms }),
  );
  fleet.stop();
  await redis.stop();
  return bench.rows(against(entrants[0].name, byName, ({ us, count }) => us / count));
}

/** Every number of waiters of every contestant in the same rounds. */
async function waiters(bench) {
  const redis = await bench.redis();
  const contestants = bench
    .entrants('waiting', FLOOR.waiting)
    .filter(({ name }) => name === FLOOR.waiting || name === OURS.run);
  const fleet = await bench.fleet(contestants, { port: redis.port });
  await bench.warmUp(fleet, contestants);
  const plan = bench.plan(
    { rounds: 9, warmup: 2, turns: 600, capMs: 3_000 },
    { rounds: 2, warmup: 1, turns: 200, capMs: 500 },
  );
  const nameOf = ({ name }, count) => `${name}, ${count}`;
  const entrants = contestants.flatMap((one) =>
    WAITERS.map((count) => ({ ...one, name: nameOf(one, count), count })),
  );
  const byName = await interleave(entrants, plan, (entrant, round) =>
    measureWaiters(fleet, entrant, {
      key: `${entrant.name}:${round}`,
      processes: 1,
      waiters: entrant.count,
      turnsEach: Math.ceil(plan.turns / entrant.count),
      capMs: plan.capMs,
    }),
  );
  return contestants.flatMap((one) => {
    const own = new Map(WAITERS.map((count) => [String(count), byName.get(nameOf(one, count))]));
    const figures = against(String(WAITERS[0]), own, ({ usPerTurn }) => usPerTurn);
    return [...figures].map(([name, figure]) => ({ name, of: one.name, ...figure }));
  });
}

/** By contestant. */
function grouped(rows) {
  const groups = {};
  for (const row of rows) (groups[row.of] ??= []).push(row);
  return groups;
}
