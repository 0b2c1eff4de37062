/**
 * A process that holds a lease and writes under it. Does what it reads, one word a line, and says what came of it as
 * JSON, one a line: `begin` a transaction, `assert` in it that the lease is held, `write` in it, `commit` it.
 *
 * node postgres-writer.mjs <compiled library> <URL> <key> <ttl>
 */
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [, , dir, url, key, ttl] = process.argv;
const load = (file) => import(pathToFileURL(`${dir}/${file}`).href);
const { LeaseEngine } = await load('lease/lease-engine.js');
const { PostgresLeaseStore } = await load('stores/postgres/postgres-lease-store.js');
const { default: pg } = await load('node_modules/pg/esm/index.mjs');

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const store = new PostgresLeaseStore(url);
const instance = `writer:${process.pid}`;
const engine = new LeaseEngine({ store, namespace: 'lease', instance, ttl: Number(ttl), wait: 0 });
const client = new pg.Client(url);
await client.connect();
const lease = await engine.acquire(key);
say({ said: 'acquired', fence: lease.fence });

const words = {
  begin: () => client.query('BEGIN'),
  assert: () => store.assertHeld(client, lease),
  write: () => client.query('INSERT INTO writes (fence) VALUES ($1)', [lease.fence]),
  commit: () => client.query('COMMIT'),
};
for await (const word of createInterface({ input: process.stdin })) {
  try {
    await words[word]();
    say({ said: word });
  } catch (error) {
    say({ said: 'failed', reason: error.code });
  }
}
