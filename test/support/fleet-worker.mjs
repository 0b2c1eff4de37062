/**
 * One process of a fleet that takes turns with a key for as long as it lives. Says every turn as JSON, one a line: its fence, and
 * from when until when it trusted its lease, in µs of the machine's monotonic clock, which all processes share. A turn that is
 * never ended by a line of its own is that of a process that died.
 *
 * node fleet-worker.mjs <compiled library> <how to make the store, JSON> <key> <ttl>
 */
import { pathToFileURL } from 'node:url';

const [, , dir, how, key, ttl] = process.argv;
const load = (file) => import(pathToFileURL(`${dir}/${file}`).href);
const { LeaseEngine } = await load('lease/lease-engine.js');
const { module, export: name, args } = JSON.parse(how);
const { [name]: Store } = await load(module);

const now = () => Number(process.hrtime.bigint()) / 1e3;
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const orders = { isOver: false };
process.on('disconnect', () => process.exit());
process.on('message', () => (orders.isOver = true));
process.on('unhandledRejection', (error) => say({ unhandled: String(error) }));
process.on('uncaughtException', (error) => say({ unhandled: String(error) }));

const store = new Store(...args);
const engine = new LeaseEngine({
  store,
  namespace: 'lease',
  instance: `fleet:${process.pid}`,
  ttl: Number(ttl),
  wait: 500,
});

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function turn() {
  let lease;
  try {
    lease = await engine.acquire(key);
  } catch (error) {
    say({ refused: error.code ?? String(error) });
    return sleep(5);
  }
  const from = now();
  const { fence } = lease;
  // Mostly short turns; now and then one that has to be renewed.
  const until = from + (Math.random() < 0.08 ? ttl * 0.5 : Math.random() * 20) * 1e3;
  while (now() < until && lease.isHeld) await sleep(1);
  const isLost = !lease.isHeld;
  // Who looked last when it was still held trusted it until then, and not after this.
  say({ fence, from, until: now(), isLost });
  await lease.release();
}

say({ ready: true });
while (!orders.isOver) await turn();
await engine.close(0, 0);
await store.close();
say({ ended: true });
process.disconnect();
