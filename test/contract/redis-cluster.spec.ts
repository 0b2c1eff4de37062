import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import { startRedisCluster, type RedisCluster } from '../support/redis-cluster.js';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
}, 40_000);
afterAll(() => cluster.stop());

describeLeaseStore(
  'RedisLeaseStore on a cluster',
  () => new RedisLeaseStore({ cluster: cluster.seeds.slice(0, 1) }),
  { describe, it },
);
