import 'reflect-metadata';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { importLibrary, libraryFolder } from '../harness/library.mjs';

const { LeaseModule, LeaseService, MemoryLeaseStore, fenceColumn } =
  await importLibrary('index.js');

// Those that the library has, for it and for the plain writes alike.
const load = createRequire(join(libraryFolder, 'index.js'));

/** Each write as it is without a gate, and with the fence of a lease that is held all the while. */
export const open = ({ redis, postgres }) =>
  redis === undefined ? openPostgres(postgres) : openRedis(redis);

async function openRedis({ port, pid }) {
  const { RedisFenceGate } = await importLibrary('redis.js');
  const { Redis } = load('ioredis');
  const redis = new Redis(port, '127.0.0.1');
  const gate = new RedisFenceGate(redis);
  const under = await holder(new MemoryLeaseStore());
  const fields = { state: 'done', pages: 17 };
  const SET = `return redis.call('SET', KEYS[1], ARGV[1])`;
  const sha = await redis.script('LOAD', SET);
  return {
    serverPid: pid,
    ways: {
      set: () => redis.set('plain', 'value'),
      script: () => redis.evalsha(sha, 1, 'plain', 'value'),
      guardedSet: () => under((fence) => gate.set('guarded', 'value', { fence })),
      hset: () => redis.hset('plain hash', fields),
      guardedHset: () => under((fence) => gate.hset('guarded hash', fields, { fence })),
    },
  };
}

async function openPostgres(connectionString) {
  const { PostgresFenceGate, PostgresLeaseStore } = await importLibrary('postgres.js');
  const { Client, Pool } = load('pg');
  const client = new Client({ connectionString });
  await client.connect();
  await client.query(
    'CREATE TABLE ledger (month text PRIMARY KEY, closed int NOT NULL, fence bigint NOT NULL) WITH (fillfactor = 50)',
  );
  await client.query(`INSERT INTO ledger VALUES ('2026-11', 0, 0)`);
  const gate = new PostgresFenceGate({ pool: new Pool({ connectionString }) });
  const store = new PostgresLeaseStore(connectionString);
  const under = await holder(store);

  const update = (more = '', where = '') =>
    client.query(`UPDATE ledger SET closed = closed + 1${more} WHERE month = $1${where}`, [
      '2026-11',
    ]);
  const transaction = async (before) => {
    await client.query('BEGIN');
    await before?.();
    await update();
    await client.query('COMMIT');
  };
  const conditional = async (fence) => {
    const column = fenceColumn(fence);
    const { rowCount } = await update(`, ${column.set}`, ` AND ${column.where}`);
    column.assertWritten(rowCount, 'ledger');
  };
  let lastDurable = true;
  // Both with and without waiting for the disk: a commit that does may cost more than all the rest.
  const durable = (isDurable, way) => async () => {
    if (lastDurable !== isDurable) {
      await client.query(`SET synchronous_commit = ${isDurable ? 'on' : 'off'}`);
      lastDurable = isDurable;
    }
    return way();
  };

  const ways = {
    transaction: () => transaction(),
    one: () => transaction(() => client.query('SELECT 1')),
    admitIn: () => under((fence) => transaction(() => gate.admitIn(client, 'ledger', fence))),
    assertHeld: () => under((lease) => transaction(() => store.assertHeld(client, lease))),
    statement: () => update(),
    fenceColumn: () => under(conditional),
  };
  await ways.admitIn();
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
  return {
    // The process that serves this connection; store.assertHeld() and gate.admitIn() use it too.
    serverPid: rows[0].pid,
    ways: Object.fromEntries(
      Object.entries(ways).flatMap(([name, way]) => [
        [name, durable(true, way)],
        [`${name}, not durable`, durable(false, way)],
      ]),
    ),
  };
}

/** Has a lease, and gives it to whoever is to write under it. */
async function holder(store) {
  class BenchModule {}
  Module({ imports: [LeaseModule.forRoot({ store })] })(BenchModule);
  const application = await NestFactory.createApplicationContext(BenchModule, { logger: false });
  const lease = await application.get(LeaseService).acquire('bench', { ttl: '1h' });
  return (write) => write(lease);
}
