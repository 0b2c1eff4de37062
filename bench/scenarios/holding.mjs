import { cpuSeconds } from '../harness/cpu-time.mjs';
import { now } from '../harness/clock.mjs';
import { decimal, percent, whole } from '../report/format.mjs';

const TTL = 10_000;

export default {
  id: 'holding',
  title: 'Holding many leases',
  about:
    `Held at a ttl of ${TTL / 1e3} s and renewed by each library in its own way: ours every third of the ttl, ` +
    'redis-semaphore every 8 s, redlock every 9.5 s. Processor time of the process and of Redis as a share of one ' +
    'core, commands per second, memory per lease by the heap after a full collection. "Least trust left" is the ' +
    'lowest of some thousand looks at leases picked at random; a lease of ours is lost when it gets to 0. ' +
    'Each is measured once.',

  async run(bench) {
    const { sizes, seconds } = bench.plan(
      { sizes: [1_000, 10_000], seconds: 20 },
      { sizes: [1_000], seconds: 3 },
    );
    const entrants = bench.entrants('holding');
    const rows = [];
    for (const keys of sizes) {
      const measureOne = (entrant) => measure(bench, entrant, { keys, seconds });
      // The few are held by all at once, each on a Redis of its own; the many one after the other.
      const measured =
        keys <= 1_000
          ? await Promise.all(entrants.map(measureOne))
          : await oneByOne(entrants, measureOne);
      rows.push(...measured);
    }
    return rows;
  },

  tables: (rows) => [
    {
      columns: [
        '',
        'leases',
        'CPU of one core',
        'CPU of Redis',
        'commands per second',
        'bytes each',
        'ms to take all',
        'lost',
        'least trust left, ms',
      ],
      rows: rows.map((row) => [
        row.name,
        whole(row.keys),
        percent(row.cpu),
        percent(row.redisCpu),
        decimal(row.commandsPerSecond),
        whole(row.bytesEach),
        whole(row.ms),
        whole(row.lost),
        whole(row.leastMs),
      ]),
    },
  ],
};

async function measure(bench, entrant, { keys, seconds }) {
  const redis = await bench.redis();
  const fleet = await bench.fleet([entrant], { port: redis.port });
  const [worker] = fleet.of(entrant);
  const contestant = fleet.opened(entrant);
  const { ms, bytesEach } = await worker.do('takeMany', contestant, {
    key: 'held',
    keys,
    ttl: TTL,
  });
  const usedBefore = [worker.pid, redis.pid].map(cpuSeconds);
  const start = now();
  const { lost, leastMs, commands } = await worker.do('keepHolding', contestant, { seconds });
  const elapsed = (now() - start) / 1e6;
  const used = [worker.pid, redis.pid].map((pid, i) => cpuSeconds(pid) - usedBefore[i]);
  fleet.stop();
  await redis.stop();
  return {
    name: entrant.name,
    kind: entrant.kind,
    keys,
    ms,
    bytesEach,
    lost,
    leastMs,
    cpu: used[0] / elapsed,
    redisCpu: used[1] / elapsed,
    commandsPerSecond: commands / elapsed,
  };
}

async function oneByOne(entrants, measureOne) {
  const rows = [];
  for (const entrant of entrants) rows.push(await measureOne(entrant));
  return rows;
}
