import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import { startSentinel, type RedisSentinel } from '../support/redis-sentinel.js';

let sentinel: RedisSentinel;
beforeAll(async () => {
  sentinel = await startSentinel();
}, 40_000);
afterAll(() => sentinel.stop());

describeLeaseStore('RedisLeaseStore behind Sentinel', () => new RedisLeaseStore(sentinel.options), {
  describe,
  it,
});
