import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { NO_PERMITS, NOT_OF_THIS_STORE } from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { lockId } from '../../lib/stores/postgres/lock-id.js';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';

let server: PostgresServer;
let admin: Pool;
let store: PostgresAdvisoryLeaseStore;
let other: PostgresAdvisoryLeaseStore;

beforeAll(async () => {
  server = await startPostgres();
  admin = new Pool({ connectionString: server.url });
  admin.on('error', () => undefined);
});
beforeEach(() => {
  store = new PostgresAdvisoryLeaseStore(server.url);
  other = new PostgresAdvisoryLeaseStore(server.url);
});
afterEach(async () => {
  await store.close();
  await other.close();
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const terminate = (key: string): Promise<unknown> =>
  admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
     AND ((classid::bigint << 32) | objid::bigint) = $1`,
    [lockId('session', key)],
  );

describe('A lock of a session', () => {
  it('keeps other processes away, tells them of the holder, and is theirs after a release', async () => {
    const held = await take(store, 'lease/a', { ttl: 60_000, instance: 'one' });
    const refusal = await other.acquire(claimOf('lease/a'));
    expect(refusal).toMatchObject({ granted: false, reason: 'held' });
    expect((await other.inspect('lease/a'))!.holders).toMatchObject([
      { instance: 'one', fence: held.fence },
    ]);
    await store.release(held, {});
    expect((await take(other, 'lease/a')).fence).toBeGreaterThan(held.fence);
  });

  it('does not end by time', async () => {
    const held = await take(store, 'lease/long', { ttl: 50 });
    await until(async () => (await other.inspect('lease/long'))!.freeInMs === 0);
    expect(await other.acquire(claimOf('lease/long'))).toEqual({ granted: false, reason: 'held' });
    expect(await store.renew([held])).toEqual(['renewed']);
  });

  it('is told to its holder in the moment that its connection ends, long before a renewal (rule 4)', async () => {
    const ttl = 600_000;
    const engine = new LeaseEngine({ store, namespace: 'lease', instance: 'i', ttl, wait: 0 });
    const lease = await engine.acquire('told');
    const { signal } = lease;
    await terminate('lease/told');
    await until(() => signal.aborted);
    expect(lease.isHeld).toBe(false);
    expect((await take(other, 'lease/told')).fence).toBeGreaterThan(lease.fence);
    await engine.close(0, 0);
  });

  it('is free as soon as the connection of its holder ends, who is told at its next renewal', async () => {
    const held = await take(store, 'lease/dying', { ttl: 60_000 });
    await terminate(held.key);
    const successor = await until(async () => {
      const answer = await other.acquire(claimOf(held.key));
      return answer.granted ? answer : undefined;
    });
    expect(successor.fence).toBeGreaterThan(held.fence);
    expect(await store.renew([held])).toEqual(['gone']);
    expect(await store.release(held, {})).toBe(false);
    expect(await other.inspect(held.key)).not.toBeNull();
    await take(store, 'lease/next');
  });

  it('is lost with the server, and with a server that stands still trust ends by the ttl', async () => {
    const options = { store, namespace: 'lease', instance: 'test', ttl: 900, wait: 0 };
    const engine = new LeaseEngine(options);
    const crashed = await engine.acquire('crash');
    await server.restart();
    await until(() => crashed.signal.aborted);
    const frozen = await until(() => engine.tryAcquire('frozen').catch(() => null));
    await server.pause();
    await until(() => frozen.signal.aborted);
    server.resume();
    await engine.close(0, 0);
  });

  it('says what it cannot do', async () => {
    const held = await take(store, 'lease/limits');
    await expect(store.acquire(claimOf('lease/b', { permits: 2 }))).rejects.toThrow(
      NO_PERMITS(store.name),
    );
    await expect(store.acquire(claimOf('lease/b', { once: 'x' }))).rejects.toThrow(
      NOT_OF_THIS_STORE('once', store.name),
    );
    await expect(store.release(held, { keepFor: 5 })).rejects.toThrow(
      NOT_OF_THIS_STORE('minHold', store.name),
    );
  });

  it('is on one connection for all keys of a process', async () => {
    await Promise.all(Array.from({ length: 50 }, (_, i) => take(store, `lease/many-${i}`)));
    const sql = "SELECT FROM pg_stat_activity WHERE application_name = 'nestjs-lease'";
    expect((await admin.query(sql)).rowCount).toBe(1);
  });
});
