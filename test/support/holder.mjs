/**
 * A process that holds a lease. Does what it reads, one word a line, and says what came of it as JSON, one a line:
 * `act` acts as the owner if it may, `act-anyway` as a program that never asks, `release` gives the lease back.
 *
 * node holder.mjs <compiled library> <Redis URL> <key> <ttl>
 */
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [, , dir, url, key, ttl] = process.argv;
const load = (file) => import(pathToFileURL(`${dir}/${file}`).href);
const { LeaseEngine } = await load('lease/lease-engine.js');
const { RedisLeaseStore } = await load('stores/redis/redis-lease-store.js');

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const store = new RedisLeaseStore(url);
const engine = new LeaseEngine({
  store,
  namespace: 'lease',
  instance: `holder:${process.pid}`,
  ttl: Number(ttl),
  wait: 0,
});
const lease = await engine.acquire(key);
const { fence } = lease;
lease.signal.addEventListener('abort', () =>
  say({ said: 'lost', reason: lease.signal.reason.reason }),
);
say({ said: 'acquired', fence });

for await (const word of createInterface({ input: process.stdin })) {
  if (word === 'act') say(lease.isHeld ? { said: 'acted', fence } : { said: 'refrained' });
  if (word === 'act-anyway') say({ said: 'acted', fence });
  if (word === 'release') {
    say({ said: await lease.release() });
    await store.close();
  }
}
