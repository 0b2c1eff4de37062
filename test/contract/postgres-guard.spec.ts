import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Client, Pool } from 'pg';
import { LeaseLostException } from '../../lib/exceptions/lease-lost.exception.js';
import {
  BAD_ISOLATION,
  BAD_LEASE,
  BAD_QUERYABLE,
  NO_TRANSACTION,
} from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { Lease } from '../../lib/lease/lease.js';
import type { Claim, Grant } from '../../lib/stores/lease-store.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';
import { HolderProcess } from '../support/holder-process.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';

let server: PostgresServer;
let pool: Pool;
let store: PostgresLeaseStore;
let client: Client;

beforeAll(async () => {
  server = await startPostgres();
  pool = new Pool({ connectionString: server.url });
  await pool.query('CREATE TABLE writes (fence bigint NOT NULL)');
  await pool.query('CREATE TABLE doc (fence bigint NOT NULL)');
});
beforeEach(async () => {
  await pool.query('TRUNCATE writes');
  store = new PostgresLeaseStore(server.url);
  client = new Client(server.url);
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await store.close();
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

const key = (): string => `lease/${randomUUID()}`;

/** As a process has it that was stopped right after it had looked at its own clock: nothing but the server is left. */
const unaware = (...held: (Claim & Grant)[]): Lease =>
  ({
    assertHeld: () => undefined,
    holdings: held.map((one) => ({ key: one.key, hold: one, fence: one.fence })),
  }) as unknown as Lease;

const expired = (one: Claim): Promise<unknown> =>
  until(async () => (await store.inspect(one.key)) === null);

const writes = async (): Promise<number> =>
  (await pool.query<{ fence: string }>('SELECT fence FROM writes')).rowCount!;

const write = (fence: number): Promise<unknown> =>
  client.query('INSERT INTO writes (fence) VALUES ($1)', [fence]);

describe('A transaction that asserts its lease', () => {
  it('commits while the lease is held', async () => {
    const held = await take(store, key());
    await client.query('BEGIN');
    await store.assertHeld(client, unaware(held));
    await write(held.fence);
    await client.query('COMMIT');
    expect(await writes()).toBe(1);
  });

  it('fails when the lease has expired', async () => {
    const stale = await take(store, key(), { ttl: 50 });
    await client.query('BEGIN');
    await expired(stale);
    await expect(store.assertHeld(client, unaware(stale))).rejects.toThrow(LeaseLostException);
    await client.query('ROLLBACK');
  });

  it('fails when somebody else has taken the key, also while it was open', async () => {
    const stale = await take(store, key(), { ttl: 50 });
    await client.query('BEGIN');
    await write(stale.fence);
    await expired(stale);
    await take(store, stale.key);
    const lost = store.assertHeld(client, unaware(stale));
    await expect(lost).rejects.toMatchObject({ code: 'LEASE_LOST', key: stale.key });
    await client.query('ROLLBACK');
    expect(await writes()).toBe(0);
  });

  it('cannot be committed by a program that does not heed the error', async () => {
    const stale = await take(store, key(), { ttl: 50 });
    await expired(stale);
    await client.query('BEGIN');
    await write(stale.fence);
    await store.assertHeld(client, unaware(stale)).catch(() => undefined);
    await expect(write(stale.fence)).rejects.toThrow('current transaction is aborted');
    expect(await client.query('COMMIT')).toMatchObject({ command: 'ROLLBACK' });
    expect(await writes()).toBe(0);
  });

  it('fails when the lease was released and is kept taken by nobody', async () => {
    const held = await take(store, key());
    await store.release(held, { keepFor: 10_000 });
    await client.query('BEGIN');
    await expect(store.assertHeld(client, unaware(held))).rejects.toThrow(LeaseLostException);
    await client.query('ROLLBACK');
  });

  it('fails when one of several leases is lost, and names its key', async () => {
    const stale = await take(store, key(), { ttl: 50 });
    const held = await take(store, key());
    await expired(stale);
    await client.query('BEGIN');
    const lost = store.assertHeld(client, unaware(held, stale));
    await expect(lost).rejects.toMatchObject({ key: stale.key });
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    await store.assertHeld(client, unaware(held, await take(store, stale.key)));
    await client.query('COMMIT');
  });

  it.each(['COMMIT', 'ROLLBACK'])('keeps takers away until its %s', async (end) => {
    const held = await take(store, key(), { ttl: 150 });
    await client.query('BEGIN');
    await store.assertHeld(client, unaware(held));
    await expired(held);
    const taker = claimOf(held.key);
    expect(await store.acquire(taker)).toEqual({ granted: false, reason: 'held' });
    expect(await store.acquire({ ...taker, permits: 3 })).toEqual({
      granted: false,
      reason: 'held',
    });
    await client.query(end);
    expect(await store.acquire(taker)).toMatchObject({ granted: true });
  });

  it('keeps takers away also when its owner has released meanwhile', async () => {
    const held = await take(store, key());
    await client.query('BEGIN');
    await store.assertHeld(client, unaware(held));
    expect(await store.release(held, {})).toBe(true);
    expect(await store.acquire(claimOf(held.key))).toEqual({ granted: false, reason: 'held' });
    await client.query('COMMIT');
    await take(store, held.key);
  });

  it('keeps no renewal, claim again or release of its owner waiting', async () => {
    const held = await take(store, key(), { ttl: 500 });
    await client.query('BEGIN');
    await store.assertHeld(client, unaware(held));
    expect(await store.renew([{ ...held, ttl: 60_000 }])).toEqual(['renewed']);
    expect((await store.inspect(held.key))!.freeInMs).toBeGreaterThan(30_000);
    expect(await store.acquire(held)).toEqual({ granted: true, fence: held.fence });
    expect(await store.release(held, {})).toBe(true);
    await client.query('COMMIT');
  });

  it('shares the key with the transactions of those who share it', async () => {
    const shared = key();
    const one = await take(store, shared, { permits: 2 });
    const two = await take(store, shared, { permits: 2 });
    const other = await pool.connect();
    await client.query('BEGIN');
    await other.query('BEGIN');
    await store.assertHeld(client, unaware(one));
    await store.assertHeld(other, unaware(two));
    await client.query('COMMIT');
    await other.query('COMMIT');
    other.release();
  });

  it('may be sent by anything that gives rows, as ORMs do', async () => {
    const held = await take(store, key());
    await client.query('BEGIN');
    const orm = {
      query: async (text: string, values: unknown[]) => (await client.query(text, values)).rows,
    };
    await store.assertHeld(orm, unaware(held));
    await client.query('COMMIT');
  });

  it('shows nobody the owner token (rule 15)', async () => {
    const held = await take(store, key());
    const sent: unknown[] = [];
    await client.query('BEGIN');
    const spy = {
      query: (text: string, values: unknown[]) => {
        sent.push(text, values);
        return client.query(text, values);
      },
    };
    await store.assertHeld(spy, unaware(held));
    await client.query('COMMIT');
    expect(JSON.stringify(sent)).not.toContain(held.token);
  });

  it('has to be one: a pool, or a client outside of a transaction, is told', async () => {
    const held = unaware(await take(store, key()));
    await expect(store.assertHeld(pool, held)).rejects.toThrow(NO_TRANSACTION());
    await expect(store.assertHeld(client, held)).rejects.toThrow(NO_TRANSACTION());
  });

  it.each(['repeatable read', 'serializable'])('is told that %s cannot see', async (isolation) => {
    const held = unaware(await take(store, key()));
    await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
    await expect(store.assertHeld(client, held)).rejects.toThrow(BAD_ISOLATION(isolation));
    await client.query('ROLLBACK');
  });

  it('names what it was given in place of a client or a lease', async () => {
    const held = unaware(await take(store, key()));
    await expect(store.assertHeld(undefined as never, held)).rejects.toThrow(
      BAD_QUERYABLE(undefined),
    );
    await expect(store.assertHeld(client, {} as never)).rejects.toThrow(BAD_LEASE({}));
  });

  it('asks the clock of its process before it asks the server (rule 4)', async () => {
    const options = { store, namespace: 'lease', instance: 'test', ttl: 5_000, wait: 0 };
    const engine = new LeaseEngine(options);
    const lease = await engine.acquire(randomUUID());
    await client.query('BEGIN');
    await store.assertHeld(client, lease);
    await client.query('COMMIT');
    await lease.release();
    const never = { query: () => Promise.reject(new Error('asked')) };
    await expect(store.assertHeld(never, lease)).rejects.toThrow(LeaseLostException);
    await client.query('BEGIN');
    await store.assertHeld(client, lease).catch(() => undefined);
    expect(await client.query('COMMIT')).toMatchObject({ command: 'ROLLBACK' });
    await engine.close(0, 0);
  });
});

describe('Owners that are slower than their leases', () => {
  it('never write after a successor did', async () => {
    const contested = key();
    await pool.query('TRUNCATE doc');
    await pool.query('INSERT INTO doc VALUES (0)');
    const outcomes = { written: 0, lost: 0, overtaken: 0 };
    const owner = async (): Promise<void> => {
      const mine = await pool.connect();
      for (let turn = 0; turn < 25; turn++) {
        const claim = claimOf(contested, { ttl: 50 });
        const grant = await until(async () => {
          const answer = await store.acquire(claim);
          return answer.granted ? answer : undefined;
        });
        // Some are in time, some are not, and some are late in the middle of their transaction.
        await sleep(Math.random() * 80);
        await mine.query('BEGIN');
        try {
          await store.assertHeld(mine, unaware({ ...claim, ...grant }));
          await sleep(Math.random() * 80);
          const sql = 'UPDATE doc SET fence = $1 WHERE fence < $1';
          const { rowCount } = await mine.query(sql, [grant.fence]);
          await mine.query('COMMIT');
          if (rowCount === 1) outcomes.written++;
          else outcomes.overtaken++;
        } catch (error) {
          expect(error).toBeInstanceOf(LeaseLostException);
          await mine.query('ROLLBACK');
          outcomes.lost++;
        }
        await store.release(claim, {});
      }
      mine.release();
    };
    await Promise.all([owner(), owner(), owner(), owner()]);
    expect(outcomes).toMatchObject({ overtaken: 0 });
    expect(Math.min(outcomes.written, outcomes.lost)).toBeGreaterThan(0);
  }, 60_000);
});

describe('A process that writes under a lease', () => {
  const TTL = 1_000;
  let lib: CompiledLib;
  let writer: HolderProcess;
  beforeAll(async () => {
    lib = await compileLib();
  });
  afterEach(() => writer.kill());
  afterAll(() => lib.remove());

  const start = async (name: string): Promise<Claim> => {
    writer = await HolderProcess.start(lib, server.url, name, TTL, 'postgres-writer.mjs');
    return claimOf(`lease/${name}`);
  };
  const says = (what: string): Promise<unknown> =>
    until(() => writer.said.some(({ said }) => said === what));

  it('and is stopped before it asserts never writes once another has the key', async () => {
    const taker = await start('stopped-before');
    for (const word of ['begin', 'write']) writer.tell(word);
    await says('write');
    await writer.freeze();
    await until(async () => (await store.acquire(taker)).granted);
    writer.tell('assert');
    writer.tell('commit');
    writer.thaw();
    await says('commit');
    expect(writer.said).toContainEqual({ said: 'failed', reason: 'LEASE_LOST' });
    // Though it went on to commit.
    expect(await writes()).toBe(0);
    expect(writer.errors).toBe('');
  });

  it('and is stopped after it asserted keeps takers away until it has committed', async () => {
    const taker = await start('stopped-after');
    for (const word of ['begin', 'assert', 'write']) writer.tell(word);
    await says('write');
    await writer.freeze();
    await until(async () => (await store.inspect(taker.key)) === null);
    expect(await store.acquire(taker)).toEqual({ granted: false, reason: 'held' });
    expect(await writes()).toBe(0);
    writer.tell('commit');
    writer.thaw();
    await until(async () => (await store.acquire(taker)).granted);
    expect(await writes()).toBe(1);
  });

  it('and is killed after it asserted leaves no write and the key free', async () => {
    const taker = await start('killed');
    for (const word of ['begin', 'assert', 'write']) writer.tell(word);
    await says('write');
    await writer.kill();
    await until(async () => (await store.acquire(taker)).granted);
    expect(await writes()).toBe(0);
  });
});
