import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Client, Pool } from 'pg';
import { POSTGRES_READ_ONLY } from '../../lib/lease.messages.js';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import { PASSWORD, startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';
import { allTold, Witness } from '../support/witness.js';

const TTL = 20_000;
const urlOf = (port: number): string =>
  `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;

let primary: PostgresServer;
let standby: PostgresServer;
/** Between the two, so that what is written can be kept from the standby. */
let replication: FaultProxy;

const startBoth = async (settings: Record<string, string> = {}): Promise<void> => {
  primary = await startPostgres({ settings });
  replication = await startFaultProxy(primary.port);
  standby = await startPostgres({ standbyOf: replication.port });
};
const stopBoth = async (): Promise<void> => {
  await standby.stop();
  await replication.close();
  await primary.stop();
};
/** Resolves when the standby has all that the primary wrote until now. */
const inStep = async (): Promise<void> => {
  const admin = new Client(primary.url);
  await admin.connect();
  const { rows } = await admin.query<{ lsn: string }>('SELECT pg_current_wal_flush_lsn() AS lsn');
  const sql = 'SELECT FROM pg_stat_replication WHERE flush_lsn >= $1';
  await until(async () => (await admin.query(sql, [rows[0]!.lsn])).rowCount === 1);
  await admin.end();
};

describe.each([
  ['PostgresLeaseStore', PostgresLeaseStore],
  ['PostgresAdvisoryLeaseStore', PostgresAdvisoryLeaseStore],
])('A hot standby, to %s', (_, Store) => {
  beforeEach(() => startBoth());
  afterEach(stopBoth);

  it('is named as what it is, at the start and by a claim, and is as good as any once promoted', async () => {
    const before = new Store(primary.url);
    const { fence } = await take(before, 'lease/standby', { ttl: TTL });
    await before.close();
    await inStep();
    const tables = [{}, { table: 'nowhere_yet' }];
    const stores = tables.map((options) => new Store(standby.url, options));
    for (const store of stores) {
      await expect(store.open()).rejects.toThrow(POSTGRES_READ_ONLY());
      await expect(store.acquire(claimOf('lease/a'))).rejects.toThrow(POSTGRES_READ_ONLY());
    }
    const witness = new Witness(stores[0]!, TTL);
    const unable: unknown = await witness.engine.tryAcquire('a').catch((error: unknown) => error);
    expect(unable).toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
      cause: { message: POSTGRES_READ_ONLY() },
    });
    standby.promote();
    const refused = await stores[0]!.acquire(claimOf('lease/standby'));
    expect(refused).toMatchObject({ granted: false, reason: 'held' });
    for (const [i, store] of stores.entries()) {
      expect((await take(store, `lease/${i}`)).fence).toBeGreaterThan(fence);
    }
    await witness.close();
    await stores[1]!.close();
  });
});

describe('After a failover, a pool of the user’s that leads to the new primary', () => {
  let proxy: FaultProxy;
  let pool: Pool;
  let witness: Witness;

  const lead = async (to: PostgresServer): Promise<void> => {
    proxy = await startFaultProxy(to.port);
    pool = new Pool({ connectionString: urlOf(proxy.port) });
    pool.on('error', () => undefined);
    const store = new PostgresLeaseStore(pool);
    await store.open();
    witness = new Witness(store, TTL);
  };
  /** The primary is dead to those who came by the proxy, which leads to the standby when it heals. */
  const failOver = async (): Promise<void> => {
    proxy.cut();
    await primary.kill();
    standby.promote();
    proxy.leadTo(standby.port);
  };
  afterEach(async () => {
    await witness.close();
    await pool.end();
    await proxy.close();
    await stopBoth();
  });

  it('goes on with the leases that were replicated, under the same fence', async () => {
    await startBoth();
    await lead(primary);
    const lease = await witness.hold('replicated');
    await inStep();
    await failOver();
    proxy.heal();
    await until(() =>
      lease.renew().then(
        () => true,
        () => false,
      ),
    );
    expect(lease.isHeld).toBe(true);
    const other = new PostgresLeaseStore(standby.url);
    const refused = await other.acquire(claimOf('lease/replicated'));
    expect(refused).toMatchObject({ granted: false, reason: 'held' });
    expect((await other.inspect('lease/replicated'))!.holders).toMatchObject([
      { fence: lease.fence },
    ]);
    await (await witness.engine.acquire('next')).release();
    await other.close();
  });

  it('meets a second owner where the grant was not replicated, who has a higher fence; the first is told at its next renewal', async () => {
    await startBoth();
    await lead(primary);
    await (await witness.engine.acquire('before')).release();
    await inStep();
    replication.stall();
    const lease = await witness.hold('overlap');
    await failOver();
    const other = new PostgresLeaseStore(standby.url);
    const second = await take(other, 'lease/overlap', { ttl: TTL });
    // The window: both act as the owner, and only their fences tell them apart.
    expect(lease.isHeld).toBe(true);
    expect(second.fence).toBeGreaterThan(lease.fence);
    proxy.heal();
    await until(() => witness.isTold, { within: TTL });
    expect(witness.tellings).toEqual(allTold('taken'));
    expect(await other.renew([second])).toEqual(['renewed']);
    await other.close();
  });

  it('meets none where a grant waits for the standby', async () => {
    await startBoth({ synchronous_standby_names: '*', synchronous_commit: 'on' });
    await lead(primary);
    await (await witness.engine.acquire('before')).release();
    replication.stall();
    const refused: unknown = await witness.engine.tryAcquire('alone').catch((e: unknown) => e);
    expect(refused).toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
    await failOver();
    proxy.heal();
    const second = await until(() => witness.engine.tryAcquire('alone').catch(() => null));
    expect(second.isHeld).toBe(true);
  });
});
