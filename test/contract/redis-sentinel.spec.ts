import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { NOT_CONNECTED, TOO_FEW_COPIES, UNKNOWN_SENTINEL_NAME } from '../../lib/lease.messages.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { adminOf, startSentinel, type RedisSentinel } from '../support/redis-sentinel.js';
import { until } from '../support/until.js';

let sentinel: RedisSentinel;
beforeAll(async () => {
  sentinel = await startSentinel();
}, 40_000);
afterAll(() => sentinel.stop());

describeLeaseStore('RedisLeaseStore behind Sentinel', () => new RedisLeaseStore(sentinel.options), {
  describe,
  it,
});

/** What a request came to: an answer, or that there is no telling. */
const outcomeOf = <T>(request: Promise<T>): Promise<T | 'unknown'> =>
  request.catch(() => 'unknown' as const);

describe('A failover behind Sentinel', () => {
  let store: RedisLeaseStore;
  beforeEach(async () => {
    await until(() => sentinel.isSettled(), { within: 20_000 });
    store = new RedisLeaseStore(sentinel.options);
    await store.open();
  });
  afterEach(() => store.close());

  /** Every replica has all that the primary has. */
  const replicated = async (): Promise<void> => {
    const admin = adminOf(await sentinel.primary());
    await admin.set('marker', '1');
    expect(await admin.wait(2, 5_000)).toBe(2);
    admin.disconnect();
  };

  it('from a primary that died keeps what its replicas had; until then nothing is known', async () => {
    const held = await take(store, 'lease/survives', { ttl: 60_000 });
    await replicated();
    const dead = await sentinel.primary();
    await dead.kill();
    const seen = new Set<unknown>();
    await until(
      async () => {
        const [renewal] = [await outcomeOf(store.renew([held]))].flat();
        seen.add(renewal);
        return renewal === 'renewed';
      },
      { within: 15_000 },
    );
    expect([...seen].toSorted()).toEqual(['renewed', 'unknown']);
    expect(await store.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
    expect(await store.release(held, {})).toBe(true);
    const next = await take(store, held.key);
    expect(next.fence).toBeGreaterThan(held.fence);
    await dead.start();
  });

  it('never leaves two who trust a key, and the next has a higher fence (rules 1, 4 and 8)', async () => {
    const engineOf = (instance: string): LeaseEngine =>
      new LeaseEngine({ store, namespace: 'lease', instance, ttl: 1_500, wait: 0 });
    const [one, other] = [engineOf('one'), engineOf('other')];
    const lease = (await one.tryAcquire('trusted'))!;
    const dead = await sentinel.primary();
    await dead.kill();
    const acquiring = other.acquire('trusted', { wait: 15_000 });
    // As long as it is held it is renewed at the new primary; then it is given back.
    void until(() => !lease.isHeld, { within: 3_000 }).catch(() => lease.release());
    const next = await acquiring;
    expect(lease.isHeld).toBe(false);
    expect(next.fence).toBeGreaterThan(lease.fence);
    await next.release();
    await Promise.all([one.close(0, 0), other.close(0, 0)]);
    await dead.start();
  });

  it('loses nothing that was granted when replicas are waited for (rules 1 and 8)', async () => {
    const careful = new RedisLeaseStore(sentinel.options, {
      waitForReplicas: 2,
      replicaTimeout: '1s',
    });
    const keys = Array.from({ length: 20 }, (_, i) => `lease/copied-${i}`);
    const held = await Promise.all(keys.map((key) => take(careful, key, { ttl: 60_000 })));
    // Not a moment to catch up.
    const dead = await sentinel.primary();
    await dead.kill();
    const after = new Set<unknown>();
    await until(
      async () => {
        const renewals = [await outcomeOf(store.renew(held))].flat();
        for (const outcome of renewals) after.add(outcome);
        return renewals.every((outcome) => outcome === 'renewed');
      },
      { within: 15_000 },
    );
    expect([...after].toSorted()).toEqual(['renewed', 'unknown']);
    // Of the two one is the primary now, and the other all that is left to wait for.
    await expect(careful.renew(held)).rejects.toThrow(TOO_FEW_COPIES(1, 2));
    await careful.close();
    await dead.start();
  });

  it('is survived by one who waits in line', async () => {
    const held = await take(store, 'lease/awaited', { ttl: 60_000 });
    const waiting = new RedisLeaseStore(new Redis({ ...sentinel.options, lazyConnect: true }));
    const engine = new LeaseEngine({
      store: waiting,
      namespace: 'lease',
      instance: 'waiter',
      ttl: 3_000,
      wait: 20_000,
    });
    const acquiring = engine.acquire('awaited');
    const lined = async (): Promise<boolean> => {
      const admin = adminOf(await sentinel.primary());
      const count = await admin.zcard('lease:{awaited}:line');
      admin.disconnect();
      return count === 1;
    };
    await until(lined);
    await replicated();
    await sentinel.failOver();
    await until(async () => (await outcomeOf(store.release(held, {}))) !== 'unknown');
    const lease = await acquiring;
    expect(lease.fence).toBeGreaterThan(held.fence);
    await lease.release();
    await engine.close(0, 0);
    await waiting.close();
  });
});

describe('Sentinels that are of no help', () => {
  it('because they know no primary of that name are so named, and nothing waits for ever', async () => {
    const store = new RedisLeaseStore({ ...sentinel.options, name: 'nobody' });
    await expect(store.open()).rejects.toMatchObject({
      cause: expect.objectContaining({ message: UNKNOWN_SENTINEL_NAME('nobody') }),
    });
    await expect(store.acquire(claimOf('lease/a', { patience: 100 }))).rejects.toThrow(
      NOT_CONNECTED(),
    );
    await store.close();
  });

  it('because they are not there are waited for, and close() does not wait for them', async () => {
    const store = new RedisLeaseStore({ sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'x' });
    await expect(store.acquire(claimOf('lease/a', { patience: 100 }))).rejects.toThrow(
      NOT_CONNECTED(),
    );
    await store.close();
  });
});
