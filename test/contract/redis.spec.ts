import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import type { Grant, LeaseStore, Refusal } from '../../lib/stores/lease-store.js';
import { claimOf } from '../support/claims.js';
import { REPLICATES_AT_ONCE, startReplica } from '../support/redis-sentinel.js';
import { until } from '../support/until.js';

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

/**
 * Less its line. There who waits is told to ask for the key instead of being given it, and what is handed over is released
 * and claimed: the suite would have it given, in one step and in order.
 */
const asked = (store: RedisLeaseStore): LeaseStore =>
  Object.assign(store as unknown as LeaseStore, {
    limits: { ...store.limits, push: false },
    enqueue: undefined,
    handOver: undefined,
  });

describe('With its replicas', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  beforeAll(async () => {
    primary = await startRedis({ args: REPLICATES_AT_ONCE });
    replica = await startReplica(primary);
  });
  afterAll(() => Promise.all([replica.stop(), primary.stop()]));

  describeLeaseStore(
    'RedisLeaseStore that waits for a replica',
    () => asked(new RedisLeaseStore(primary.url, { waitForReplicas: 1, replicaTimeout: '1s' })),
    { describe, it },
  );
});

describe('After its quarantine', () => {
  const QUARANTINE = 50;
  const storeOf = (): RedisLeaseStore =>
    new RedisLeaseStore(server.url, { quarantine: QUARANTINE });
  const isAnswered = (answer: Grant | Refusal): boolean =>
    answer.granted || answer.reason !== 'unavailable';
  const isOver = async (): Promise<void> => {
    const store = storeOf();
    await until(async () => isAnswered(await store.acquire(claimOf('lease/over'))));
    await store.close();
  };

  describeLeaseStore(
    'RedisLeaseStore with quarantine',
    async () => {
      await isOver();
      return asked(storeOf());
    },
    {
      describe,
      it,
      loseData: async () => {
        await server.restart();
        await isOver();
      },
      freeze: () => server.pause(),
      thaw: async () => server.resume(),
    },
  );
});
