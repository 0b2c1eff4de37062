import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { benchFolder } from '../harness/library.mjs';
import { interleave } from '../harness/rounds.mjs';
import { spread } from '../harness/statistics.mjs';
import { microseconds } from '../report/format.mjs';

const PLAIN = { name: 'the method alone', way: 'plain' };
const WAYS = [
  PLAIN,
  { name: '@WithLease(key)', way: 'leased' },
  { name: '@WithLease((id) => key)', way: 'leasedByArgument' },
  { name: 'leases.run(key, method)', way: 'run' },
];

export default {
  id: 'decorator',
  title: 'What the decorator adds, on the memory store',
  about:
    'An async method of a provider, called over and over: decorated, and under run(), against the same method ' +
    'undecorated. No store is asked over a network, so this is what the library itself costs.',

  async run(bench) {
    const file = pathToFileURL(join(benchFolder, 'contestants', 'decorated.mjs')).href;
    const contestant = { file, options: {} };
    const fleet = await bench.fleet([contestant], {});
    const plan = bench.plan({ rounds: 15, warmup: 8, ms: 60 }, { rounds: 5, warmup: 8, ms: 30 });
    const byName = await interleave(WAYS, plan, ({ way }) =>
      fleet.of(contestant)[0].do('calls', contestant, { way, ms: plan.ms }),
    );
    const plain = byName.get(PLAIN.name);
    return [...byName].map(([name, rounds]) => ({
      name,
      us: spread(rounds.map(({ us, count }) => us / count)),
      added: spread(
        rounds.map(({ us, count }, round) => us / count - plain[round].us / plain[round].count),
      ),
    }));
  },

  tables: (rows) => [
    {
      columns: ['', 'µs per call', 'added µs', 'p10–p90'],
      rows: rows.map(({ name, us, added }) => [
        name,
        microseconds(us.median),
        microseconds(added.median),
        `${microseconds(added.p10)}–${microseconds(added.p90)}`,
      ]),
    },
  ],
};
