import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LeaseUnavailableException } from '../../lib/exceptions/lease-unavailable.exception.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { allTold, nobodyTold, Witness } from '../support/witness.js';

const TTL = 1_200;

describe('Under a held lease', () => {
  let server: RedisServer;
  let proxy: FaultProxy;
  let admin: Redis;
  let witness: Witness;

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startFaultProxy(server.port);
    admin = new Redis(server.url, { retryStrategy: () => 20 });
    admin.on('error', () => undefined);
    witness = new Witness(new RedisLeaseStore(proxy.url), TTL);
  });
  afterEach(async () => {
    await witness.close();
    admin.disconnect();
    await proxy.close();
    await server.stop();
  });

  const renewals = (): number => witness.count('renewed');
  const twoMoreRenewals = async (): Promise<void> => {
    const before = renewals();
    await until(() => renewals() >= before + 2 || witness.isTold);
  };

  it('FLUSHALL is a loss, and the next holder has a higher fence (rules 5, 6 and 8)', async () => {
    const { fence } = await witness.hold('job');
    await admin.flushall();
    await until(() => witness.isTold);
    expect(witness.tellings).toEqual(allTold('taken'));
    expect((await witness.hold('job')).fence).toBeGreaterThan(fence);
  });

  it('a restart with empty memory is a loss, and the next holder has a higher fence (rules 6 and 8)', async () => {
    const { fence } = await witness.hold('job');
    await server.restart();
    await until(() => witness.isTold);
    expect(witness.tellings).toEqual(allTold('taken'));
    expect((await witness.hold('job')).fence).toBeGreaterThan(fence);
  });

  it('SCRIPT FLUSH goes by unnoticed', async () => {
    await witness.hold('job');
    await admin.script('FLUSH');
    await twoMoreRenewals();
    expect(witness.tellings).toEqual(nobodyTold);
    expect(witness.count('renewal-failed')).toBe(0);
  });

  it('CLIENT KILL costs a reconnect and not the lease (rule 6)', async () => {
    await witness.hold('job');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await twoMoreRenewals();
    expect(witness.tellings).toEqual(nobodyTold);
  });

  it('a connection that is cut and heals in time costs no lease (rule 6)', async () => {
    await witness.hold('job');
    proxy.cut();
    await until(() => witness.count('renewal-failed') > 0);
    proxy.heal();
    await twoMoreRenewals();
    expect(witness.tellings).toEqual(nobodyTold);
  });

  it('a connection that stays cut is a loss (rule 4)', async () => {
    await witness.hold('job');
    proxy.cut();
    await until(() => witness.isTold);
    expect(witness.tellings).toEqual(allTold('expired'));
  });

  it('a half-open connection is a loss, and is replaced when the network is back (rule 4)', async () => {
    await witness.hold('job');
    proxy.stall();
    await until(() => witness.isTold);
    expect(witness.tellings).toEqual(allTold('expired'));
    proxy.heal();
    await until(() => witness.engine.tryAcquire('job').catch(() => null));
  });

  it('renewals whose answers are lost are a loss, and never bring the lease back (rules 4 and 5)', async () => {
    const lease = await witness.hold('job');
    proxy.swallowReplies();
    await until(() => witness.isTold);
    proxy.heal();
    await until(() => witness.engine.tryAcquire('job').catch(() => null));
    expect(lease.isHeld).toBe(false);
    expect(witness.tellings).toEqual(allTold('expired'));
  });

  it('every failed renewal is an event with the time that is left (rule 6)', async () => {
    await witness.hold('job');
    proxy.cut();
    await until(() => witness.count('renewal-failed') > 1);
    const failures = witness.events.filter((event) => event.type === 'renewal-failed');
    expect(failures[0]).toMatchObject({ key: 'job', failures: 1 });
    expect(failures[1]!.remainingMs).toBeLessThan(failures[0]!.remainingMs);
  });

  it('a release that nobody answers says so, and throws nothing (rule 7)', async () => {
    const lease = await witness.hold('job');
    proxy.stall();
    expect(await lease.release()).toBe('unknown');
    expect(witness.tellings).toEqual(nobodyTold);
  });
});

describe('A claim whose answer is lost', () => {
  let server: RedisServer;
  let proxy: FaultProxy;
  let witness: Witness;

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startFaultProxy(server.port);
    const store = new RedisLeaseStore(proxy.url);
    await store.open();
    witness = new Witness(store, 600);
    // Connected, the server's clock and the scripts are known: the next thing it sends is the claim.
    for (const wait of [0, 1]) await (await witness.engine.acquire('other', { wait })).release();
  });
  afterEach(async () => {
    await witness.close();
    await proxy.close();
    await server.stop();
  });

  it('is unavailable, and is given back although the server had granted it (rule 2)', async () => {
    const direct = new RedisLeaseStore(server.url);
    proxy.swallowReplies();
    const ttl = 4_000;
    const claim = witness.engine.acquire('job', { ttl });
    claim.catch(() => undefined);
    const record = await until(() => direct.inspect('lease/job'));
    const since = performance.now();
    await until(async () => (await direct.inspect('lease/job')) === null);
    expect(performance.now() - since).toBeLessThan(record.freeInMs - ttl / 3);
    await expect(claim).rejects.toThrow(LeaseUnavailableException);
    await direct.close();
  });

  it('frees itself by its ttl when even giving it back is impossible', async () => {
    const direct = new RedisLeaseStore(server.url);
    proxy.swallowReplies();
    const claim = expect(witness.engine.acquire('job')).rejects.toThrow(LeaseUnavailableException);
    await until(() => direct.inspect('lease/job'));
    proxy.cut();
    await claim;
    await until(async () => (await direct.inspect('lease/job')) === null);
    await direct.close();
  });

  it('is taken up again under the same fence when the waiting goes on (rule 2)', async () => {
    const direct = new RedisLeaseStore(server.url);
    proxy.swallowReplies();
    const waiting = witness.engine.acquire('job', { wait: '10s', ttl: 3_000 });
    const record = await until(() => direct.inspect('lease/job'));
    proxy.heal();
    const lease = await waiting;
    expect(lease.fence).toBe(record.holders[0]!.fence);
    await lease.release();
    await direct.close();
  });
});
