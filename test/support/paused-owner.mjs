/**
 * A Nest service that writes under leases, and is stopped (SIGSTOP) after its last check. Reads one order a line, as JSON
 * `{ to: 'redis' | 'sql' | 'http', at, keys, goesOn }`: takes the keys, and under each of them writes twice, `guarded` through
 * a gate and `plain` beside it. When every write has come to the place `at`, or has failed before it, says
 * `{ checked: [<keys>] }`, those that came so far, and stops itself; with `goesOn` it does not. Says in the end what came of
 * it: `{ outcomes: { <key>: { guarded, plain } } }`, each `written` or why not.
 *
 * - `before`: it was checked that the lease is held, and nothing was sent
 * - `inside`: the transaction is open and has written; the lease was found held, and the fence not yet sent to the gate
 * - `admitted`: the transaction is open, its fence admitted, and it has written
 *
 * node paused-owner.mjs <compiled library> <JSON { ttl, leases, redis, sql, http, secret, idle }>
 */
import 'reflect-metadata';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { Pool } from 'pg';

const [, , dir, json] = process.argv;
const { ttl, leases: leasesUrl, redis, sql, http, secret, idle } = JSON.parse(json);
const load = (file) => import(pathToFileURL(`${dir}/${file}`).href);
const { fencedFetch, LeaseModule, LeaseService } = await load('index.js');
const { RedisFenceGate, RedisLeaseStore } = await load('redis.js');
const { PostgresFenceGate } = await load('postgres.js');

class OwnerModule {}
const store = new RedisLeaseStore(leasesUrl);
Module({ imports: [LeaseModule.forRoot({ store, ttl, fencing: { secrets: secret } })] })(
  OwnerModule,
);
const app = await NestFactory.createApplicationContext(OwnerModule, { logger: false });
const leases = app.get(LeaseService);
const client = redis && new Redis(redis);
const pool =
  sql &&
  new Pool({
    connectionString: sql,
    max: 40,
    ...(idle && { idle_in_transaction_session_timeout: idle }),
  });
pool?.on('error', () => undefined);
const sqlGate = pool && new PostgresFenceGate({ pool });

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Where all writes of an order meet, and the process stops. */
class Standstill {
  #missing;
  #goOn;
  #isOver = new Promise((resolve) => (this.#goOn = resolve));

  /** @param onAll - called when each of so many has arrived, or will not */
  constructor(writes, onAll) {
    this.#missing = writes;
    this.onAll = onAll;
  }

  /** Somebody who gets there goes on with the others; who will not is not waited for. */
  arrive() {
    if (--this.#missing === 0) {
      this.onAll();
      // Before any timer and any answer: this is the tick in which it was stopped.
      this.#goOn();
    }
    return this.#isOver;
  }
}

const INSERT = 'INSERT INTO writes (key, way, by) VALUES ($1, $2, $3)';

const writers = {
  redis: {
    guarded: (lease, key, { before }) => {
      // Between the gate's own look at the lease and the socket.
      const stopping = Object.create(client, {
        evalsha: { value: async (...args) => (await before(), client.evalsha(...args)) },
      });
      return new RedisFenceGate(stopping).set(`guarded:${key}`, `A of ${key}`);
    },
    plain: async (lease, key, { before }) => {
      lease.assertHeld();
      await before();
      await client.set(`plain:${key}`, `A of ${key}`);
    },
  },

  sql: {
    async guarded(lease, key, { before, inside, admitted }) {
      const { fence } = lease;
      const write = (tx) => tx.query(INSERT, [key, 'guarded', 'A']);
      if (admitted !== nowhere) {
        // As an application would: everything by the gate, on a connection of its pool.
        return sqlGate.transaction(key, async (tx) => {
          await write(tx);
          await admitted();
        });
      }
      lease.assertHeld();
      await before();
      await inTransaction(async (tx) => {
        if (inside === nowhere) {
          // It knew its fence, and asked no clock since.
          await sqlGate.admitIn(tx, key, fence);
          await write(tx);
        } else {
          await write(tx);
          const stopping = { query: async (text) => (await inside(), tx.query(text)) };
          await sqlGate.admitIn(stopping, key);
        }
      });
    },
    async plain(lease, key, { before, inside }) {
      lease.assertHeld();
      await before();
      await inTransaction(async (tx) => {
        await tx.query(INSERT, [key, 'plain', 'A']);
        if (inside === nowhere) return;
        lease.assertHeld();
        await inside();
      });
    },
  },

  http: {
    guarded: (lease, key, { before }) =>
      // Between the headers and the socket.
      put(
        fencedFetch(async (...args) => (await before(), fetch(...args))),
        `guarded/${key}`,
      ),
    plain: async (lease, key, { before }) => {
      lease.assertHeld();
      await before();
      await put(fetch, `plain/${key}`);
    },
  },
};

async function inTransaction(work) {
  const tx = await pool.connect();
  try {
    await tx.query('BEGIN');
    await work(tx);
    await tx.query('COMMIT');
  } catch (error) {
    await tx.query('ROLLBACK');
    throw error;
  } finally {
    tx.release();
  }
}

async function put(send, path) {
  const answer = await send(`${http}/${path}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ by: 'A' }),
  });
  if (!answer.ok) throw await answer.json();
}

const nowhere = async () => {};

async function obey({ to, at, keys, goesOn = false, ways = ['guarded', 'plain'] }) {
  const outcomes = {};
  const arrived = [];
  const standstill = new Standstill(keys.length * ways.length, () => {
    const hasCome = (key) => arrived.filter((each) => each === key).length === ways.length;
    say({ checked: keys.filter(hasCome) });
    if (!goesOn) process.kill(process.pid, 'SIGSTOP');
  });

  /** Of one write: called by who has come to its place, and by who has failed. */
  const placeFor = (key) => {
    let isFirst = true;
    return (isThere = true) => {
      if (isFirst && isThere) arrived.push(key);
      const arrival = isFirst ? standstill.arrive() : undefined;
      isFirst = false;
      return arrival;
    };
  };

  const outcomeOf = async (way, lease, key, place) => {
    const places = { before: nowhere, inside: nowhere, admitted: nowhere, [at]: () => place() };
    try {
      await writers[to][way](lease, key, places);
      return 'written';
    } catch (error) {
      return error.code ?? String(error.message ?? error);
    } finally {
      void place(false);
    }
  };

  const writeBoth = async (key) => {
    const places = ways.map(() => placeFor(key));
    const work = (lease) =>
      Promise.all(
        ways.map(async (way, i) => {
          outcomes[key][way] = await outcomeOf(way, lease, key, places[i]);
        }),
      );
    outcomes[key] = {};
    // That the lease was lost on the way is what this is about; whether it was had at all, `checked` tells.
    await leases.run(key, work).catch(() => undefined);
    for (const place of places) void place(false);
  };
  await Promise.all(keys.map(writeBoth));
  say({ outcomes });
}

await pool?.query('SELECT 1');
await sqlGate?.admit('opened', Date.now() * 1_000);
say({ said: 'ready' });
for await (const line of createInterface({ input: process.stdin })) await obey(JSON.parse(line));
await app.close();
await store.close();
await pool?.end();
client?.disconnect();
