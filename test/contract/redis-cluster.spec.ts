import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { Hold } from '../../lib/stores/lease-store.js';
import { slotOf } from '../../lib/stores/redis/cluster/slot.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { bulk, startFakeRedis, timeReply, type FakeRedis } from '../support/fake-redis.js';
import { startRedisCluster, type RedisCluster } from '../support/redis-cluster.js';
import { until } from '../support/until.js';

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

describe('A cluster that changes', () => {
  let store: RedisLeaseStore;
  beforeEach(async () => {
    await until(() => cluster.isWell(), { within: 20_000 });
    store = new RedisLeaseStore(
      new Cluster(cluster.seeds, { lazyConnect: true, redisOptions: { keyPrefix: 'app:' } }),
    );
    await store.open();
  });
  afterEach(() => store.close());

  const renewed = (held: Hold): Promise<string> =>
    store.renew([held]).then(
      ([outcome]) => outcome!,
      () => 'unknown',
    );

  it('has leases on all its nodes, and scripts where they were forgotten', async () => {
    const keys = Array.from({ length: 60 }, (_, i) => `lease/spread-${i}`);
    for (const node of cluster.nodes) await cluster.ask(node, 'SCRIPT', 'FLUSH');
    const held = await Promise.all(keys.map((key) => take(store, key)));
    const owners = await Promise.all(
      keys.map((key) => cluster.ownerOf(`app:lease:{${key.slice(6)}}`)),
    );
    expect(new Set(owners).size).toBe(3);
    expect(await store.renew(held)).toEqual(held.map(() => 'renewed'));
    const listed: string[] = [];
    for await (const { key } of store.list({ prefix: 'lease/spread-' })) listed.push(key);
    expect(listed.toSorted()).toEqual(keys.toSorted());
  });

  it('moves a slot while leases in it are held, awaited and claimed', async () => {
    const held = await take(store, 'lease/moving', { ttl: 60_000 });
    const lease = 'app:lease:{moving}';
    const slot = slotOf(lease);
    const source = await cluster.ownerOf(lease);
    const owners = await Promise.all(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((it) => cluster.ownerOf(it)),
    );
    const target = owners.find((node) => node !== source)!;
    const waiting = new RedisLeaseStore({ cluster: cluster.seeds, keyPrefix: 'app:' });
    const engine = new LeaseEngine({
      store: waiting,
      namespace: 'lease',
      instance: 'w',
      ttl: 3_000,
      wait: 15_000,
    });
    const acquiring = engine.acquire('moving');
    await until(async () => (await cluster.ask(source, 'ZCARD', `${lease}:line`)) === 1);
    await cluster.beginMove(slot, source, target);
    expect(await renewed(held)).toBe('renewed');
    await cluster.moveKeys(slot, source, target);
    // By ASK: the source has it no more, the target has the slot not yet.
    expect(await renewed(held)).toBe('renewed');
    expect(await store.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
    await cluster.endMove(slot, source, target);
    expect(await renewed(held)).toBe('renewed');
    expect(await store.release(held, {})).toBe(true);
    const next = await acquiring;
    expect(next.fence).toBeGreaterThan(held.fence);
    await next.release();
    await engine.close(0, 0);
    await waiting.close();
  });

  it('keeps what the replica of a primary that died had; until then nothing is known', async () => {
    const held = await take(store, 'lease/survives', { ttl: 60_000 });
    const dead = await cluster.ownerOf('app:lease:{survives}');
    const replica = await cluster.replicaOf(dead);
    await until(
      async () => (await cluster.ask(replica, 'DBSIZE')) === (await cluster.ask(dead, 'DBSIZE')),
    );
    await dead.kill();
    const seen = new Set<string>();
    await until(async () => seen.add(await renewed(held)).has('renewed'), { within: 15_000 });
    expect([...seen].filter((it) => it !== 'unknown')).toEqual(['renewed']);
    expect(await store.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
    expect(await store.release(held, {})).toBe(true);
    expect((await take(store, held.key)).fence).toBeGreaterThan(held.fence);
    await dead.start();
  });

  it('replaces a primary that is frozen, which executes no claim when it wakes (rule 2)', async () => {
    const held = await take(store, 'lease/frozen', { ttl: 60_000 });
    const frozen = await cluster.ownerOf('app:lease:{frozen}');
    const replica = await cluster.replicaOf(frozen);
    await until(
      async () => (await cluster.ask(replica, 'DBSIZE')) === (await cluster.ask(frozen, 'DBSIZE')),
    );
    await frozen.pause();
    const late = store.acquire(claimOf('lease/late {frozen}', { patience: 100 })).catch(() => null);
    await until(async () => (await renewed(held)) === 'renewed', { within: 15_000 });
    frozen.resume();
    expect((await late)?.granted ?? false).toBe(false);
    expect(await store.inspect('lease/late {frozen}')).toBeNull();
  });
});

describe('A claim in a cluster', () => {
  it('has the deadline of the clock of the node that it is sent to, also when it was redirected (rule 2)', async () => {
    const HOUR = 3_600_000;
    const ports: number[] = [];
    const node = (ahead: number, moves: boolean): Promise<FakeRedis> =>
      startFakeRedis(([name, what]) => {
        if (name === 'TIME') return timeReply(Date.now() + ahead);
        if (name === 'INFO') return bulk('redis_version:7.0.0\r\nredis_mode:cluster\r\n');
        if (name === 'EVALSHA') {
          return moves
            ? `-MOVED ${slotOf('lease:{a}')} 127.0.0.1:${ports[1]}\r\n`
            : `*3\r\n:${Date.now()}\r\n:1\r\n${bulk('1700000000000000')}`;
        }
        if (name !== 'CLUSTER') return undefined;
        if (what?.toUpperCase() === 'INFO')
          return bulk('cluster_state:ok\r\ncluster_current_epoch:1\r\n');
        return `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${bulk('127.0.0.1')}:${ports[0]}\r\n`;
      });
    const nodes = [await node(0, true), await node(-HOUR, false)];
    ports.push(...nodes.map(({ url }) => Number(new URL(url).port)));
    const store = new RedisLeaseStore({ cluster: [{ host: '127.0.0.1', port: ports[0]! }] });
    expect(await store.acquire(claimOf('lease/a'))).toMatchObject({ granted: true });
    for (const [i, ahead] of [0, -HOUR].entries()) {
      const [, , , , , deadline] = nodes[i]!.commands.find(([name]) => name === 'EVALSHA')!;
      expect(Math.abs(Number(deadline) / 1_000 - Date.now() - ahead)).toBeLessThan(HOUR / 10);
    }
    await store.close();
    await Promise.all(nodes.map((one) => one.close()));
  });
});
