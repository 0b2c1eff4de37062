import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { benchFolder } from '../harness/library.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { microseconds, ratio } from '../report/format.mjs';

const REDIS = [
  { name: 'SET', way: 'set' },
  { name: 'SET by a script of one line', way: 'script', to: 'SET' },
  { name: 'gate.set()', way: 'guardedSet', to: 'SET' },
  { name: 'HSET', way: 'hset' },
  { name: 'gate.hset()', way: 'guardedHset', to: 'HSET' },
];

const POSTGRES = [
  { name: 'BEGIN, UPDATE, COMMIT', way: 'transaction' },
  { name: 'the same and SELECT 1', way: 'one', to: 'BEGIN, UPDATE, COMMIT' },
  { name: 'the same and gate.admitIn()', way: 'admitIn', to: 'BEGIN, UPDATE, COMMIT' },
  { name: 'the same and store.assertHeld()', way: 'assertHeld', to: 'BEGIN, UPDATE, COMMIT' },
  { name: 'UPDATE', way: 'statement' },
  { name: 'UPDATE with fenceColumn()', way: 'fenceColumn', to: 'UPDATE' },
];

const TABLES = [
  { id: 'redis', title: 'Redis', writes: REDIS },
  { id: 'postgres', title: 'PostgreSQL, a commit waits for the disk', writes: POSTGRES },
  {
    id: 'postgresInMemory',
    title: 'PostgreSQL, a commit does not wait for the disk',
    writes: POSTGRES.map((one) => ({ ...one, way: `${one.way}, not durable` })),
  },
];

export default {
  id: 'fences',
  title: 'What a gate adds to a write',
  about:
    'One caller that writes the same key, or row, over and over: as it is, and under the fence of a lease that it holds. Ratios ' +
    'are to the plain write of the same table. `SELECT 1` and the script of one line are no gates: they show what one more ' +
    'round trip costs, and what a script does. Processor time is that of Node and of the server’s process together. PostgreSQL ' +
    'with `synchronous_commit` on, and off.',
  isLong: true,

  async run(bench) {
    const [redis, postgres] = [await bench.redis(), await bench.postgres()];
    const file = pathToFileURL(join(benchFolder, 'contestants', 'fences.mjs')).href;
    const onRedis = {
      file: `${file}?on=redis`,
      options: { redis: { port: redis.port, pid: redis.pid } },
    };
    const onPostgres = { file: `${file}?on=postgres`, options: { postgres: postgres.url } };
    const fleet = await bench.fleet([onRedis, onPostgres], {});
    const plan = bench.plan({ rounds: 15, warmup: 5, ms: 80 }, { rounds: 5, warmup: 5, ms: 40 });
    const result = {};
    for (const { id, writes } of TABLES) {
      const contestant = id === 'redis' ? onRedis : onPostgres;
      const byName = await interleave(writes, plan, ({ way }) =>
        fleet.of(contestant)[0].do('callsProfiled', contestant, { way, ms: plan.ms, atATime: 10 }),
      );
      result[id] = writes.map(({ name, to = name }) => ({
        name,
        time: against(to, byName, ({ us, count }) => us / count).get(name),
        cpu: against(to, byName, ({ cpu, count }) => cpu / count).get(name),
      }));
    }
    return result;
  },

  tables: (result) =>
    TABLES.map(({ id, title }) => ({
      title,
      columns: ['', 'µs per write', '× plain', 'p10–p90', 'µs of processor', '× plain', 'p10–p90'],
      rows: result[id].map(({ name, time, cpu }) => [
        name,
        ...[time, cpu].flatMap((figure) => [microseconds(figure.value), ...ratio(figure.ratio)]),
      ]),
    })),
};
