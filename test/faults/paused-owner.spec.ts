import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Pool, type ClientBase } from 'pg';
import { fenceHeaders, type Lease } from 'nestjs-lease';
import { PostgresFenceGate } from 'nestjs-lease/postgres';
import { RedisFenceGate } from 'nestjs-lease/redis';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import { PausedOwner, type Order, type Way } from '../support/paused-owner-process.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { realProcess } from '../support/real-process.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { FencedService } from '../support/fenced-service-process.js';
import { until } from '../support/until.js';

/** More of them: PAUSED_OWNER_ROUNDS=20000 npm test -- paused-owner */
const ROUNDS = Number(realProcess.env['PAUSED_OWNER_ROUNDS'] ?? 1_000);

/**
 * A round is one key: A is granted it and finds it held, is stopped past its ttl, B is granted it and writes, A goes on with
 * its own write. So many keys go through one stop of the process; each of them is written to twice, through a gate and,
 * as the control of the same round, without one.
 */
const KEYS_AT_ONCE = 20;
const TTL = 100;
const WAYS = ['guarded', 'plain'] as const;
const SECRET = 'a secret of sixteen bytes and more';

/** Where B writes as A does, and what is there in the end. */
interface Target {
  write(key: string, lease: Lease): Promise<unknown>;
  /** Of these keys, those that A wrote last. */
  writtenByA(way: Way, keys: readonly string[]): Promise<readonly string[]>;
}

let redis: RedisServer;
let postgres: PostgresServer;
let lib: CompiledLib;
let service: FencedService;
let store: RedisLeaseStore;
let b: LeaseEngine;
let client: Redis;
let pool: Pool;
let targets: Record<Order['to'], Target>;

const started: { kill(): Promise<void> }[] = [];

beforeAll(async () => {
  [redis, postgres, lib] = await Promise.all([startRedis(), startPostgres(), compileLib()]);
  service = await FencedService.start(lib, SECRET);
  store = new RedisLeaseStore(redis.url);
  b = new LeaseEngine({ store, namespace: 'lease', instance: 'b', ttl: 30_000, wait: 10_000 });
  client = new Redis(redis.url);
  pool = new Pool({ connectionString: postgres.url, max: KEYS_AT_ONCE });
  await pool.query(
    'CREATE TABLE writes (at serial, key text NOT NULL, way text NOT NULL, by text NOT NULL)',
  );
  const gates = { redis: new RedisFenceGate(client), sql: new PostgresFenceGate({ pool }) };
  await gates.sql.admit('opened', 1_000 * Date.now());
  targets = {
    redis: {
      write: (key, fence) =>
        Promise.all([
          gates.redis.set(`guarded:${key}`, 'B', { fence }),
          client.set(`plain:${key}`, 'B'),
        ]),
      async writtenByA(way, keys) {
        // On a machine that stands still A may have lost all of them before its check.
        if (keys.length === 0) return [];
        const values = await client.mget(keys.map((key) => `${way}:${key}`));
        return keys.filter((key, i) => values[i] === `A of ${key}`);
      },
    },
    sql: {
      async write(key, fence) {
        const write = (tx: ClientBase | Pool, way: string) =>
          tx.query('INSERT INTO writes (key, way, by) VALUES ($1, $2, $3)', [key, way, 'B']);
        await gates.sql.transaction(key, (tx) => write(tx, 'guarded'), fence);
        await write(pool, 'plain');
      },
      async writtenByA(way, keys) {
        const { rows } = await pool.query<{ key: string }>(
          `SELECT key FROM writes WHERE by = 'A' AND way = $1 AND key = ANY ($2)`,
          [way, keys],
        );
        return rows.map(({ key }) => key);
      },
    },
    http: {
      write: (key, fence) =>
        Promise.all([
          service.put(`guarded/${key}`, 'B', fenceHeaders({ fence, secret: SECRET })),
          service.put(`plain/${key}`, 'B'),
        ]),
      async writtenByA(way, keys) {
        const last = (await service.last())[way];
        return keys.filter((key) => last[key] === 'A');
      },
    },
  };
}, 60_000);

afterEach(() => Promise.all(started.splice(0).map((each) => each.kill())));
afterAll(async () => {
  await b.close(0, 0);
  await store.close();
  await service.kill();
  client.disconnect();
  await pool.end();
  await Promise.all([redis.stop(), postgres.stop(), lib.remove()]);
});

async function startA(
  options: { ttl?: number; redis?: string; http?: string; idle?: number } = {},
) {
  const owner = await PausedOwner.start(lib, {
    ttl: TTL,
    leases: redis.url,
    redis: redis.url,
    sql: postgres.url,
    http: service.url,
    secret: SECRET,
    ...options,
  });
  started.push(owner);
  return owner;
}

/** B is granted every key, which it can be when A's ttl is over, and writes. */
async function takeOver(to: Order['to'], keys: readonly string[]): Promise<void> {
  await Promise.all(
    keys.map((key) => b.run(key, (lease) => targets[to].write(key, lease), { ttl: 30_000 })),
  );
}

interface Tally {
  rounds: number;
  stops: number;
  /** Writes of A that came after B's, and are there. */
  accepted: { guarded: number; plain: number };
}

const tallies = new Map<string, Tally>();
afterAll(() => {
  const lines = [...tallies].map(([what, { rounds, stops, accepted }]) => {
    const { guarded, plain } = accepted;
    return `  ${what}: ${rounds} rounds in ${stops} stops, stale writes accepted: ${guarded} with the gate, ${plain} without`;
  });
  if (lines.length > 0) realProcess.stdout.write(`The paused owner\n${lines.join('\n')}\n`);
});

/** After B has written under these keys: lets A go on, and looks what is there. */
async function goOn(a: PausedOwner, tally: Tally, to: Order['to'], keys: readonly string[]) {
  expect(a.isFrozen).toBe(true);
  a.thaw();
  const outcomes = await a.outcomes();
  tally.stops++;
  tally.rounds += keys.length;
  for (const way of WAYS) {
    tally.accepted[way] += (await targets[to].writtenByA(way, keys)).length;
  }
  for (const key of keys) {
    expect(outcomes[key]).toEqual({ guarded: 'STALE_FENCE', plain: 'written' });
  }
}

const newTally = (what: string): Tally => {
  const tally = { rounds: 0, stops: 0, accepted: { guarded: 0, plain: 0 } };
  tallies.set(what, tally);
  return tally;
};

const SHARE = Math.ceil(ROUNDS / 6);
const LONG_ENOUGH = 60_000 + ROUNDS * 60;

describe('An owner that is stopped past its ttl, after its last check', () => {
  it.each([
    ['redis', 'before', 'Redis, nothing sent yet'],
    ['sql', 'before', 'SQL, nothing sent yet'],
    ['sql', 'inside', 'SQL, its transaction open and written to'],
    ['http', 'before', 'HTTP, nothing sent yet'],
  ] as const)(
    'writes nothing to %s through a gate, stopped %s (%s)',
    async (to, at, what) => {
      const a = await startA();
      const tally = newTally(what);
      while (tally.rounds < SHARE) {
        const keys = await a.comeTo({ to, at, keys: keysFor(tally) });
        await until(() => a.isFrozen, { what: 'A stands still' });
        await takeOver(to, keys);
        await goOn(a, tally, to, keys);
      }
      expect(tally.accepted).toEqual({ guarded: 0, plain: tally.rounds });
      expect(a.errors).toBe('');
    },
    LONG_ENOUGH,
  );

  it.each([
    ['redis', 'Redis, sent and still under way'],
    ['http', 'HTTP, sent and still under way'],
  ] as const)(
    'writes nothing to %s through a gate that was under way by then (%s)',
    async (to, what) => {
      const proxy = await startFaultProxy(to === 'redis' ? redis.port : service.port);
      started.push({ kill: () => proxy.close() });
      const a = await startA({ [to]: `${to}://127.0.0.1:${proxy.port}` });
      const tally = newTally(what);
      while (tally.rounds < SHARE) {
        proxy.stall();
        const order = { to, at: 'before', keys: keysFor(tally), goesOn: true } as const;
        const keys = await a.comeTo(order);
        await until(() => isUnderWay(proxy, keys), { what: 'all writes are under way' });
        await a.freeze();
        await takeOver(to, keys);
        proxy.heal();
        // A stands still and its writes land: no check of its own could have stopped them.
        await until(
          async () => (await targets[to].writtenByA('plain', keys)).length === keys.length,
        );
        await goOn(a, tally, to, keys);
      }
      expect(tally.accepted).toEqual({ guarded: 0, plain: tally.rounds });
      expect(a.errors).toBe('');
    },
    LONG_ENOUGH,
  );
});

const keysFor = ({ rounds }: Tally): string[] =>
  Array.from({ length: Math.min(KEYS_AT_ONCE, SHARE - rounds) }, () => randomUUID());

/** All that A has written under these keys has left it, and has come nowhere. */
function isUnderWay({ heldBack }: FaultProxy, keys: readonly string[]): boolean {
  return keys.every((key) =>
    WAYS.every((way) => [':', '/'].some((sign) => heldBack.includes(`${way}${sign}${key}`))),
  );
}

describe('An owner that is stopped in its transaction, after it was admitted', () => {
  /** A holds the key, and its transaction the mark of it. */
  async function stopAdmitted(options: { idle?: number } = {}) {
    const a = await startA({ ttl: 500, ...options });
    for (;;) {
      const order = { to: 'sql', at: 'admitted', ways: ['guarded'], keys: [randomUUID()] } as const;
      const [key] = await a.comeTo(order);
      await until(() => a.isFrozen, { what: 'A stands still' });
      if (key !== undefined) return { a, key };
      a.thaw();
      await a.outcomes();
    }
  }

  const writersOf = async (key: string): Promise<readonly string[]> => {
    const sql = `SELECT by FROM writes WHERE key = $1 AND way = 'guarded' ORDER BY at`;
    return (await pool.query<{ by: string }>(sql, [key])).rows.map(({ by }) => by);
  };

  const waitsForALock = async (): Promise<boolean> => {
    const sql = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH %'`;
    return (await pool.query(sql)).rows.length > 0;
  };

  it('keeps the next owner waiting, and is written over by it when it goes on', async () => {
    const { a, key } = await stopAdmitted();
    const taken = takeOver('sql', [key]);
    await until(waitsForALock, { what: 'B waits' });
    expect(await writersOf(key)).toEqual([]);
    a.thaw();
    await taken;
    expect(await a.outcomes()).toEqual({ [key]: { guarded: 'written' } });
    expect(await writersOf(key)).toEqual(['A', 'B']);
  });

  it('keeps a next owner that has a lock_timeout waiting for that long, and it is told', async () => {
    const { a, key } = await stopAdmitted();
    const impatient = new Pool({ connectionString: postgres.url, lock_timeout: 100 });
    const gate = new PostgresFenceGate({ pool: impatient });
    await b.run(key, async (fence) => {
      const write = (): Promise<unknown> =>
        gate.transaction(
          key,
          (tx) => tx.query(`INSERT INTO writes (key, way, by) VALUES ($1, 'guarded', 'B')`, [key]),
          fence,
        );
      await expect(write()).rejects.toMatchObject({ code: '55P03' });
      a.thaw();
      await a.outcomes();
      // Its lease is still held, and nothing stands in the way any more.
      await write();
    });
    await impatient.end();
    expect(await writersOf(key)).toEqual(['A', 'B']);
  });

  it('is ended by an idle_in_transaction_session_timeout: the next owner goes on, and nothing of it is left', async () => {
    const { a, key } = await stopAdmitted({ idle: 200 });
    await takeOver('sql', [key]);
    expect(a.isFrozen).toBe(true);
    a.thaw();
    const { [key]: outcome } = await a.outcomes();
    expect(outcome!.guarded).not.toBe('written');
    expect(await writersOf(key)).toEqual(['B']);
    // A connection that is gone is an error of the transaction, and ends no process (rule 12).
    const next = await a.comeTo({ to: 'sql', at: 'before', keys: [randomUUID()] });
    a.thaw();
    expect(next).toHaveLength(1);
    expect(a.errors).toBe('');
  });

  it('and is killed there lets the next owner go on, and nothing of it is left', async () => {
    const { a, key } = await stopAdmitted();
    await a.kill();
    await takeOver('sql', [key]);
    expect(await writersOf(key)).toEqual(['B']);
  });
});
