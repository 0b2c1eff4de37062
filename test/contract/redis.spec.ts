import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describeLeaseStore('RedisLeaseStore', () => new RedisLeaseStore(server.url), {
  describe,
  it,
  loseData: () => server.restart(),
  freeze: () => server.pause(),
  thaw: async () => server.resume(),
});

// The shortest retention: what outlives it must do so by its own ttl.
describeLeaseStore(
  'RedisLeaseStore with a key prefix, a database and a short retention of fences',
  () =>
    new RedisLeaseStore(
      { port: server.port, keyPrefix: 'app[1]{x}*:', db: 3 },
      { fenceRetention: 1_000 },
    ),
  { describe, it },
);
