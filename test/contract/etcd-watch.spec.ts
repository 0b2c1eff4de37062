import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startEtcdProxy, type EtcdProxy } from '../support/etcd-proxy.js';
import {
  startEtcd,
  startEtcdCluster,
  type EtcdCluster,
  type EtcdMember,
} from '../support/etcd-server.js';
import { until } from '../support/until.js';

let server: EtcdMember;
let proxy: EtcdProxy;
let store: EtcdLeaseStore;
/** Somebody else. */
let other: EtcdLeaseStore;
let keys = 0;
let key: string;

beforeAll(async () => {
  server = await startEtcd();
});
beforeEach(async () => {
  key = `lease/watched-${keys++}`;
  proxy = await startEtcdProxy(server.port);
  store = new EtcdLeaseStore({ endpoints: proxy.url });
  other = new EtcdLeaseStore({ endpoints: server.url });
});
afterEach(async () => {
  await Promise.all([store.close(), other.close()]);
  await proxy.close();
});
afterAll(() => server.stop());

class Ear {
  told = 0;
  readonly hear = (): void => void this.told++;
}

const streams = (): number => proxy.requests.filter(({ path }) => path === 'v3/watch').length;

describe('Watching a key', () => {
  it.each([
    ['a release', () => ({ how: {}, ttl: 60_000 })],
    ['a release of a permit', () => ({ how: {}, ttl: 60_000, permits: 3 })],
    ['the end of a ttl', () => ({ how: undefined, ttl: 1_000 })],
    ['the end of a place that was kept', () => ({ how: { keepFor: 1_000 }, ttl: 60_000 })],
  ])('tells of %s by somebody else', async (_, given) => {
    const {
      how,
      ttl,
      permits = 1,
    } = given() as {
      how?: object;
      ttl: number;
      permits?: number;
    };
    const held = await take(other, key, { ttl, permits });
    const ear = new Ear();
    await store.watch(key, ear.hear);
    if (how !== undefined) await other.release(held, how);
    await until(() => ear.told > 0 && other.inspect(key).then((record) => record === null));
  });

  it('tells nothing of other keys, nor of claims', async () => {
    const near = await take(other, `${key}-near`);
    const ear = new Ear();
    const own = new Ear();
    await store.watch(key, ear.hear);
    await store.watch(near.key, own.hear);
    await take(other, key);
    await other.release(near, {});
    await until(() => own.told > 0);
    expect(ear.told).toBe(0);
  });

  it('takes one connection for all', async () => {
    const ears = Array.from({ length: 40 }, () => new Ear());
    const held = await Promise.all(ears.map((_, i) => take(other, `${key}-${i}`)));
    await Promise.all(held.map((one, i) => store.watch(one.key, ears[i]!.hear)));
    expect(streams()).toBe(1);
    await until(() => proxy.connections === 1);
    await Promise.all(held.map((one) => other.release(one, {})));
    await until(() => ears.every(({ told }) => told > 0));
  });

  it('that is watched already takes none', async () => {
    const [one, two] = [new Ear(), new Ear()];
    const stop = await store.watch(key, one.hear);
    await store.watch(key, two.hear);
    await stop();
    await other.release(await take(other, key), {});
    await until(() => two.told > 0);
    expect(one.told).toBe(0);
    expect(streams()).toBe(1);
  });

  it('goes on after its connection broke, and misses nothing that happened meanwhile', async () => {
    const held = await take(other, key);
    const ear = new Ear();
    await store.watch(key, ear.hear);
    proxy.script = ({ path }) => (path === 'v3/watch' ? 'reset' : undefined);
    proxy.dropConnections();
    await until(() => streams() > 1);
    await other.release(held, {});
    expect(ear.told).toBe(0);
    proxy.script = () => undefined;
    await until(() => ear.told > 0);
  });

  it('goes on after what it missed was forgotten by etcd', async () => {
    const held = await take(other, key);
    const ear = new Ear();
    await store.watch(key, ear.hear);
    proxy.script = ({ path }) => (path === 'v3/watch' ? 'reset' : undefined);
    proxy.dropConnections();
    await until(() => streams() > 1);
    await other.release(held, {});
    const again = await take(other, key);
    const { revision } = (await server.status())!;
    await server.post('v3/kv/compaction', { revision: `${revision}` });
    proxy.script = () => undefined;
    await until(() => ear.told > 0);
    const before = ear.told;
    await other.release(again, {});
    await until(() => ear.told > before);
  });

  it('goes on after the server was down', async () => {
    const own = await startEtcd();
    const [mine, theirs] = [own, own].map(({ url }) => new EtcdLeaseStore({ endpoints: url }));
    const held = await take(theirs!, key, { ttl: 60_000 });
    const ear = new Ear();
    await mine!.watch(key, ear.hear);
    await own.kill();
    await own.start();
    await until(() => theirs!.release(held, {}).catch(() => false));
    await until(() => ear.told > 0);
    await Promise.all([mine!.close(), theirs!.close()]);
    await own.stop();
  });

  it('goes on when etcd was built anew, and counts from below', async () => {
    const anew = await startEtcd();
    const there = new EtcdLeaseStore({ endpoints: anew.url });
    for (let i = 0; i < 3; i++) await other.release(await take(other, key), {});
    const ear = new Ear();
    await store.watch(key, ear.hear);
    await other.release(await take(other, key), {});
    await until(() => ear.told > 0);
    proxy.targetPort = anew.port;
    proxy.dropConnections();
    // Whoever waits is to look: everything may have happened.
    await until(() => ear.told > 1);
    const before = ear.told;
    await until(async () => {
      await there.release(await take(there, key), {});
      return ear.told > before;
    });
    expect((await anew.status())!.revision).toBeLessThan((await server.status())!.revision);
    await there.close();
    await anew.stop();
  });

  it('that is cut off as soon as it begins is tried again ever less often', async () => {
    const header = '"header":{"revision":"7","raft_term":"2"}';
    proxy.script = ({ path }) =>
      path === 'v3/watch' ? { text: `{"result":{${header},"created":true}}\n` } : undefined;
    await store.watch(key, () => {}).catch(() => undefined);
    await setTimeout(2_000);
    // After 50 ms, 100 ms, 200 ms, and so on.
    expect(streams()).toBeLessThanOrEqual(7);
    proxy.script = () => undefined;
    const ear = new Ear();
    await store.watch(key, ear.hear);
    await other.release(await take(other, key), {});
    await until(() => ear.told > 0);
  });

  it('fails when there is nobody to tell, and works later', async () => {
    const held = await take(other, key);
    proxy.script = ({ path }) => (path === 'v3/watch' ? 'reset' : undefined);
    const ear = new Ear();
    await expect(store.watch(key, ear.hear)).rejects.toThrow();
    proxy.script = () => undefined;
    await store.watch(key, ear.hear);
    await other.release(held, {});
    await until(() => ear.told > 0);
  });

  it('fails in time when the server does not answer', async () => {
    proxy.script = ({ path }) => (path === 'v3/watch' ? 'hold' : undefined);
    await expect(store.watch(key, () => {})).rejects.toThrow();
  });
});

describe('Watching in a cluster', () => {
  let cluster: EtcdCluster;
  beforeAll(async () => {
    cluster = await startEtcdCluster(3);
  });
  afterAll(() => cluster.stop());

  it('goes on with another member when its own is frozen and somebody notices', async () => {
    const [first, ...rest] = await cluster.followers();
    const leader = await cluster.leader();
    const all = [first!, leader, ...rest].map(({ url }) => url);
    const mine = new EtcdLeaseStore({ endpoints: all });
    const theirs = new EtcdLeaseStore({ endpoints: leader.url });
    const held = await take(theirs, key, { ttl: 60_000 });
    const ear = new Ear();
    await mine.watch(key, ear.hear);
    await first!.pause();
    try {
      // As a waiter does by itself.
      expect(await mine.acquire(claimOf(key))).toMatchObject({ reason: 'held' });
      await theirs.release(held, {});
      await until(() => ear.told > 0);
    } finally {
      first!.resume();
    }
    await Promise.all([mine.close(), theirs.close()]);
  });
});

describe('Waiting with an engine of another process', () => {
  it('ends with the key, by a push, all waiters one after the other (rule 10)', async () => {
    const engineOf = (one: EtcdLeaseStore): LeaseEngine =>
      new LeaseEngine({
        store: one,
        namespace: 'lease',
        instance: 'test',
        ttl: 30_000,
        wait: 20_000,
      });
    const engines = [engineOf(store), engineOf(other)];
    const first = await engines[0]!.tryAcquire(key);
    const fences: number[] = [];
    const waiters = Array.from({ length: 10 }, async (_, i) => {
      const lease = await engines[i % 2]!.acquire(key);
      fences.push(lease.fence);
      await lease.release();
    });
    await until(() => streams() > 0);
    await first!.release();
    await Promise.all(waiters);
    expect(fences).toHaveLength(10);
    expect(fences).toEqual(fences.toSorted((a, b) => a - b));
    await Promise.all(engines.map((engine) => engine.close(0, 0)));
  });
});
