import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { redisKeys } from '../../lib/stores/redis/redis-keys.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

describe('A record in Redis that is not what it seems', () => {
  let server: RedisServer;
  let admin: Redis;
  let store: RedisLeaseStore;

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
    store = new RedisLeaseStore(server.url);
    await store.open();
  });
  afterAll(async () => {
    await store.close();
    admin.disconnect();
    await server.stop();
  });

  it.each(['0123456789abcdef', '-customer data-1', '42', ''])(
    'being somebody else’s value is left alone: %p (rule 14)',
    async (value) => {
      const key = `lease/foreign ${value}`;
      const { lease } = redisKeys(key);
      await admin.set(lease, value);
      await expect(store.acquire(claimOf(key))).rejects.toThrow();
      expect(await admin.get(lease)).toBe(value);
    },
  );

  it('being a permit from before an exclusive lease frees and prolongs nothing (rules 5 and 7)', async () => {
    const key = 'lease/clock set back';
    const permit = await take(store, key, { ttl: 60, permits: 2 });
    await until(async () => (await store.inspect(key)) === null);
    const alone = await take(store, key, { ttl: 60_000 });
    // As a server does whose clock was set back: the permit's time lies in the future again.
    await admin.zadd(redisKeys(key).permits, Date.now() + 60_000, permit.token);
    expect(await store.renew([permit])).toEqual(['gone']);
    expect(await store.release(permit, {})).toBe(false);
    expect(await store.renew([alone])).toEqual(['renewed']);
    expect((await store.acquire(claimOf(key))).granted).toBe(false);
  });
});
