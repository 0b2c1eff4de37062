import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LeaseLostException } from '../../lib/exceptions/lease-lost.exception.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { allTold, Witness } from '../support/witness.js';

const TTL = 1_500;

describe('Work under a lease', () => {
  let server: RedisServer;
  let admin: Redis;
  let witness: Witness;

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    const store = new RedisLeaseStore(server.url);
    await store.open();
    witness = new Witness(store, TTL);
  });
  afterEach(() => witness.close());

  it('that throws while its lease is lost fails with its own error (rule 13)', async () => {
    const own = new Error('the handler’s own');
    const run = witness.engine.run('two failures', async (lease) => {
      witness.watch(lease);
      await admin.flushall();
      await until(() => lease.signal.aborted);
      throw own;
    });
    await expect(run).rejects.toBe(own);
    expect(witness.tellings).toEqual(allTold('taken'));
  });

  it('that throws while Redis is frozen fails with its own error (rules 7 and 13)', async () => {
    const own = new Error('the handler’s own');
    const run = witness.engine.run('frozen', async () => {
      await server.pause();
      throw own;
    });
    await expect(run)
      .rejects.toBe(own)
      .finally(() => server.resume());
  });

  it('that returns after its lease was lost does not pass for done (rule 13)', async () => {
    const run = witness.engine.run('lost', async (lease) => {
      await admin.flushall();
      await until(() => lease.signal.aborted);
      return 'result';
    });
    await expect(run).rejects.toBeInstanceOf(LeaseLostException);
  });

  it('that blocked the event loop past its ttl is lost at its first look, before any timer (rule 4)', async () => {
    const lease = await witness.hold('blocked');
    const end = performance.now() + TTL;
    while (performance.now() < end);
    // Nothing has had its turn since: this is the same tick.
    expect(lease.isHeld).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LeaseLostException);
    expect(lease.remaining).toBe(0);
    expect(witness.tellings).toEqual(allTold('expired'));
  });

  it('that blocked the event loop past its ttl cannot enter its lease again (rule 4)', async () => {
    const run = witness.engine.run('re-entered', async () => {
      const end = performance.now() + TTL;
      while (performance.now() < end);
      return witness.engine.run('re-entered', async () => 'inner');
    });
    await expect(run).rejects.toBeInstanceOf(LeaseLostException);
  });
});
