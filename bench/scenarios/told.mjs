import { connect } from 'node:net';
import { sleep } from '../harness/clock.mjs';
import { whole } from '../report/format.mjs';

const TTL = 2_000;
const TROUBLE_AT = 200;
const FROZEN_FOR = 6_000;
const PATIENCE = 9_000;

const TROUBLES = {
  frozen: async (redis) => {
    redis.freeze();
    await sleep(FROZEN_FOR);
    redis.thaw();
  },
  stolen: (redis) => say(redis.port, 'FLUSHALL\r\n'),
};

export default {
  id: 'told',
  title: 'When the holder is told',
  about:
    `A lease of ${TTL} ms, trouble ${TROUBLE_AT} ms after it was granted: Redis stands still for ${FROZEN_FOR / 1e3} s, or the key is ` +
    `deleted by somebody else. Milliseconds from asking until the holder is told; whoever is told after ${TTL} may have ` +
    'worked beside the next owner. Each on a Redis of its own, once.',
  isLong: true,

  async run(bench) {
    const entrants = bench.entrants('told');
    return Promise.all(
      entrants.map(async (entrant) => {
        const [frozen, stolen] = await Promise.all(
          Object.values(TROUBLES).map((trouble) => measure(bench, entrant, trouble)),
        );
        return { name: entrant.name, kind: entrant.kind, frozen, stolen };
      }),
    );
  },

  tables: (rows) => [
    {
      columns: ['', `Redis frozen ${FROZEN_FOR / 1e3} s`, 'key deleted'],
      rows: rows.map(({ name, frozen, stolen }) => [name, toldAfter(frozen), toldAfter(stolen)]),
    },
  ],
};

const toldAfter = ({ afterMs }) =>
  afterMs === undefined ? `not in ${PATIENCE / 1e3} s` : whole(afterMs);

async function measure(bench, entrant, trouble) {
  const redis = await bench.redis();
  const fleet = await bench.fleet([entrant], { port: redis.port });
  const [worker] = fleet.of(entrant);
  const contestant = fleet.opened(entrant);
  await worker.do('takeOne', contestant, { ttl: TTL });
  await sleep(TROUBLE_AT);
  await trouble(redis);
  return worker.do('told', contestant, { patienceMs: PATIENCE });
}

function say(port, command) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(command));
    socket.once('data', () => {
      socket.destroy();
      resolve();
    });
  });
}
