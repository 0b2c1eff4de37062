import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { Client, Pool } from 'pg';
import { LeaseLostException } from '../../lib/exceptions/lease-lost.exception.js';
import {
  LISTEN_BEHIND_POOLER,
  NO_POSTGRES,
  NO_TRANSACTION,
  POOLER_IN_BETWEEN,
  POSTGRES_SAID,
} from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startPgBouncer, type PgBouncer } from '../support/pgbouncer.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';

const POOL_SIZE = 2;
let server: PostgresServer;
let bouncer: PgBouncer;
let admin: Pool;

beforeAll(async () => {
  server = await startPostgres();
  bouncer = await startPgBouncer(server, { poolSize: POOL_SIZE });
  admin = new Pool({ connectionString: server.url });
  admin.on('error', () => undefined);
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await admin.end();
  await bouncer.stop();
  await server.stop();
});

describeLeaseStore(
  'PostgresLeaseStore behind a pooler that gives a connection for a transaction',
  () => new PostgresLeaseStore(bouncer.url, { listen: false }),
  {
    describe,
    it,
    loseData: () => server.restartEmpty(),
    freeze: () => server.pause(),
    thaw: async () => server.resume(),
  },
);

const count = async (sql: string): Promise<number> =>
  Number((await admin.query<{ count: string }>(`SELECT count(*) FROM ${sql}`)).rows[0]!.count);

/** What would stay behind on a connection of the pooler's. */
const sessionLocks = (): Promise<number> => count("pg_locks WHERE locktype = 'advisory'");

const engineOn = (store: PostgresLeaseStore): LeaseEngine =>
  new LeaseEngine({ store, namespace: 'lease', instance: 'test', ttl: 30_000, wait: 20_000 });

describe('Behind a pooler that gives a connection for a transaction', () => {
  let store: PostgresLeaseStore;
  let client: Client;

  beforeEach(async () => {
    store = new PostgresLeaseStore(bouncer.url, { listen: false });
    client = new Client(bouncer.url);
    client.on('error', () => undefined);
    await client.connect();
  });
  afterEach(async () => {
    await client.end();
    await store.close();
  });

  it('many processes share a few connections of the server, and one wins each key', async () => {
    const stores = Array.from({ length: 8 }, () => new PostgresLeaseStore(bouncer.url));
    // The pooler may find only now that the server of the contract is another one.
    await until(() => Promise.all(stores.map((one) => one.open())).catch(() => undefined));
    for (let round = 0; round < 30; round++) {
      const key = `lease/pooled-${round}`;
      const claims = stores.map((one) => one.acquire(claimOf(key, { patience: 10_000 })));
      expect((await Promise.all(claims)).filter(({ granted }) => granted)).toHaveLength(1);
    }
    const theirs = "pg_stat_activity WHERE application_name = 'nestjs-lease'";
    expect(await count(theirs)).toBeLessThanOrEqual(POOL_SIZE);
    await Promise.all(stores.map((one) => one.close()));
  });

  it('who waits gets the key all the same when listening was left on, and is told of it once', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const listening = new PostgresLeaseStore(bouncer.url);
    const [one, two] = [engineOn(store), engineOn(listening)];
    for (const key of ['polled-a', 'polled-b', 'polled-c']) {
      const first = await one.acquire(key);
      const second = two.acquire(key);
      await expect(listening.watch!(`lease/${key}`, () => undefined)).rejects.toThrow(
        LISTEN_BEHIND_POOLER(),
      );
      await first.release();
      await (await second).release();
    }
    expect(warned.mock.calls).toEqual([[LISTEN_BEHIND_POOLER()]]);
    expect(await sessionLocks()).toBe(0);
    await Promise.all([one.close(0, 0), two.close(0, 0)]);
    await listening.close();
  });

  it('a transaction that asserts its lease commits, and keeps the key from others until then', async () => {
    const engine = engineOn(store);
    const lease = await engine.acquire('asserted');
    await client.query('BEGIN');
    await store.assertHeld(client, lease);
    await lease.release();
    const refused = await store.acquire(claimOf('lease/asserted'));
    expect(refused).toEqual({ granted: false, reason: 'held' });
    expect(await client.query('COMMIT')).toMatchObject({ command: 'COMMIT' });
    await take(store, 'lease/asserted');
    await engine.close(0, 0);
  });

  it('a transaction of who is no owner any more cannot commit', async () => {
    const engine = engineOn(store);
    const lease = await engine.acquire('stale');
    await admin.query("UPDATE nestjs_lease SET holders = '[]' WHERE key = 'lease/stale'");
    await client.query('BEGIN');
    await expect(store.assertHeld(client, lease)).rejects.toThrow(LeaseLostException);
    expect(await client.query('COMMIT')).toMatchObject({ command: 'ROLLBACK' });
    await engine.close(0, 0);
  });

  it('to assert outside of a transaction is told from within one', async () => {
    const engine = engineOn(store);
    const lease = await engine.acquire('outside');
    await expect(store.assertHeld(client, lease)).rejects.toThrow(NO_TRANSACTION());
    expect(await sessionLocks()).toBe(0);
    await engine.close(0, 0);
  });

  it('leases go on when the pooler was away, and claims are refused as an unreachable store meanwhile', async () => {
    const held = await take(store, 'lease/away', { ttl: 60_000 });
    await bouncer.kill();
    await expect(store.acquire(claimOf('lease/other'))).rejects.toThrow(NO_POSTGRES());
    await bouncer.start();
    expect(await until(() => store.renew([held]).catch(() => undefined))).toEqual(['renewed']);
  });

  it('a parameter of the connection that the pooler refuses is named', async () => {
    const refused = new PostgresLeaseStore({
      connectionString: bouncer.url,
      statement_timeout: 5_000,
    });
    const said = POSTGRES_SAID('unsupported startup parameter: statement_timeout', '08P01');
    await expect(refused.open()).rejects.toThrow(said);
    await expect(refused.acquire(claimOf('lease/parameter'))).rejects.toThrow(said);
    await refused.close();
  });
});

describe.each(['transaction', 'session'] as const)(
  'A pooler that gives a %s a connection',
  (mode) => {
    let single: PgBouncer;
    beforeAll(async () => {
      single = await startPgBouncer(server, { mode, poolSize: 1 });
    });
    afterAll(() => single.stop());

    it('is none for locks of a session: refused, and nothing stays behind', async () => {
      const store = new PostgresAdvisoryLeaseStore(single.url);
      await expect(store.open()).rejects.toMatchObject({ cause: { message: POOLER_IN_BETWEEN() } });
      await expect(store.acquire(claimOf('lease/session'))).rejects.toMatchObject({
        cause: { message: POOLER_IN_BETWEEN() },
      });
      await store.close();
      expect(await sessionLocks()).toBe(0);
      // The one connection that the store had been lent.
      const next = new Client(single.url);
      await next.connect();
      const { rows } = await next.query('SHOW tcp_user_timeout');
      expect(rows).toEqual([{ tcp_user_timeout: '0' }]);
      await next.end();
    });

    it('is none to listen behind', async () => {
      const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      const store = new PostgresLeaseStore(single.url);
      await expect(store.watch!('lease/a', () => undefined)).rejects.toThrow(
        LISTEN_BEHIND_POOLER(),
      );
      expect(warned).toHaveBeenCalledTimes(1);
      await store.close();
    });
  },
);
