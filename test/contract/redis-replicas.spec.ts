import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  BAD_REPLICAS,
  IN_QUARANTINE,
  QUARANTINE_IN_CLUSTER,
  READ_ONLY_REDIS,
  REDIS_TOO_OLD,
  TOO_FEW_COPIES,
} from '../../lib/lease.messages.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { bulk, startFakeRedis } from '../support/fake-redis.js';
import { adminOf, infoOf, REPLICATES_AT_ONCE, startReplica } from '../support/redis-sentinel.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

let primary: RedisServer;
const stores: RedisLeaseStore[] = [];
const storeOf = (...args: ConstructorParameters<typeof RedisLeaseStore>): RedisLeaseStore => {
  stores.push(new RedisLeaseStore(...args));
  return stores.at(-1)!;
};
beforeEach(async () => {
  primary = await startRedis({ args: REPLICATES_AT_ONCE });
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await primary.stop();
});

describe('A store that waits for replicas', () => {
  it('grants and renews what a replica has, and nothing that it has not', async () => {
    const replica = await startReplica(primary);
    const store = storeOf(primary.url, { waitForReplicas: 1 });
    const held = await take(store, 'lease/copied');
    expect(await store.renew([held])).toEqual(['renewed']);
    await replica.pause();
    await expect(store.renew([held])).rejects.toThrow(TOO_FEW_COPIES(0, 1));
    await expect(store.acquire(claimOf('lease/alone'))).rejects.toThrow(TOO_FEW_COPIES(0, 1));
    replica.resume();
    await until(async () => (await store.renew([held]).catch(() => []))[0] === 'renewed');
    const admin = adminOf(replica);
    await primary.kill();
    await admin.replicaof('NO', 'ONE');
    const after = storeOf(replica.url);
    expect(await after.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
    admin.disconnect();
    await replica.stop();
  });

  it.each([[-1], [1.5], ['1']])('names an impossible number: %p', (waitForReplicas) => {
    const construct = (): unknown =>
      storeOf(primary.url, { waitForReplicas: waitForReplicas as 1 });
    expect(construct).toThrow(BAD_REPLICAS(waitForReplicas));
  });
});

describe('A server that may have forgotten leases', () => {
  const QUARANTINE = 400;
  const granted = (store: RedisLeaseStore, permits: number): Promise<boolean> =>
    store.acquire(claimOf(`lease/q-${permits}`, { permits })).then(
      (answer) => answer.granted,
      () => false,
    );

  it.each([1, 2])('grants nothing until they have ended, permits: %i', async (permits) => {
    const store = storeOf(primary.url, { quarantine: QUARANTINE });
    const refusal = await store.acquire(claimOf('lease/first', { permits }));
    expect(refusal).toMatchObject({ reason: 'unavailable', retryAfterMs: QUARANTINE });
    expect(refusal).toMatchObject({ cause: new Error(IN_QUARANTINE(QUARANTINE)) });
    await until(() => granted(store, permits));
    const admin = adminOf(primary);
    await admin.flushall();
    admin.disconnect();
    expect(await granted(store, permits)).toBe(false);
    await until(() => granted(store, permits));
  });

  it('is also one that was restarted with its data, or took over', async () => {
    const store = storeOf(primary.url, { quarantine: QUARANTINE });
    const claim = claimOf('lease/known', { ttl: 60_000 });
    await until(async () => (await store.acquire(claim)).granted);
    const replica = await startReplica(primary);
    await primary.kill();
    const admin = adminOf(replica);
    await admin.replicaof('NO', 'ONE');
    admin.disconnect();
    const after = storeOf(replica.url, { quarantine: QUARANTINE });
    expect(await after.acquire(claimOf('lease/new'))).toMatchObject({ reason: 'unavailable' });
    expect(await after.renew([claim])).toEqual(['renewed']);
    await until(async () => (await after.acquire(claimOf('lease/new'))).granted);
    await after.close();
    await replica.stop();
  });

  it('cannot be told in a cluster', () => {
    const cluster = [{ host: '127.0.0.1', port: 1 }];
    expect(() => storeOf({ cluster }, { quarantine: true })).toThrow(QUARANTINE_IN_CLUSTER());
  });
});

describe('A server that is not the primary', () => {
  it('grants nothing and says what it is; what it hears of a turn is of no effect (rule 1)', async () => {
    const next = await startReplica(primary);
    const [old, now] = [storeOf(primary.url), storeOf(next.url)];
    const held = await take(old, 'lease/turn', { ttl: 60_000 });
    const waiter = claimOf(held.key);
    const onTurn = jest.fn();
    await old.enqueue(waiter, onTurn);
    await until(() => onTurn.mock.calls.length > 0);
    expect(await old.enqueue(waiter, onTurn)).toMatchObject({ inLine: true });
    const admins = [adminOf(primary), adminOf(next)] as const;
    expect(await admins[0].wait(1, 5_000)).toBe(1);
    const [place] = await admins[0].zrange('lease:{turn}:line', '0', '0');
    const channel = place!.split(' ')[3]!;
    // The roles change and no connection is closed: who waits still listens at the old primary.
    await admins[0].call('FAILOVER');
    await until(async () => (await infoOf(primary)).includes('master_link_status:up'));
    onTurn.mockClear();
    expect(await now.release(held, {})).toBe(true);
    // Published after whatever the release did, and heard after it.
    await admins[1].publish(channel, `free ${waiter.token}`);
    await until(() => onTurn.mock.calls.length > 0);
    expect(onTurn.mock.calls).toEqual([[]]);
    await expect(old.acquire(claimOf('lease/other'))).rejects.toThrow(READ_ONLY_REDIS());
    for (const admin of admins) admin.disconnect();
    await next.stop();
  });

  it('or too old is named', async () => {
    const info = bulk('redis_version:6.0.16\r\nloading:0\r\n');
    const fake = await startFakeRedis(([name]) => (name === 'INFO' ? info : undefined));
    await expect(storeOf(fake.url).open()).rejects.toThrow(REDIS_TOO_OLD('6.0.16'));
    await fake.close();
  });
});
