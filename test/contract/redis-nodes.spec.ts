import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { SRV_CLUSTER } from '../../lib/lease.messages.js';
import { slotOf } from '../../lib/stores/redis/cluster/slot.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { makeCertificates } from '../support/certificates.js';
import { claimOf, take } from '../support/claims.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { startPrimaries, type RedisCluster } from '../support/redis-cluster.js';
import { freePort } from '../support/redis-server.js';
import { until } from '../support/until.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

function storeOf(...args: ConstructorParameters<typeof RedisLeaseStore>): RedisLeaseStore {
  const store = new RedisLeaseStore(...args);
  closing.push(() => store.close());
  return store;
}

/** One of each node: keys that it has. */
const KEYS = ['lease/a', 'lease/b', 'lease/c', 'lease/d'];
const nameOf = (key: string): string => `lease:{${key.slice('lease/'.length)}}`;

describe('Two primaries of a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startPrimaries(2);
  }, 20_000);
  afterAll(() => cluster.stop());

  it('are reached where natMap says that they are, also when one says where a key is', async () => {
    const proxies = await Promise.all(cluster.nodes.map(({ port }) => startFaultProxy(port)));
    closing.push(() => Promise.all(proxies.map((proxy) => proxy.close())));
    const natMap = Object.fromEntries(
      cluster.nodes.map(({ port }, i) => [
        `127.0.0.1:${port}`,
        { host: '127.0.0.1', port: proxies[i]!.port },
      ]),
    );
    const seed = { host: '127.0.0.1', port: proxies[0]!.port };
    const client = new Cluster([seed], { natMap, lazyConnect: true });
    for (const store of [storeOf(client), storeOf({ cluster: [seed], natMap })]) {
      const held = await Promise.all(KEYS.map((key) => take(store, key)));
      expect(new Set(await Promise.all(KEYS.map((key) => cluster.ownerOf(nameOf(key))))).size).toBe(
        2,
      );
      const key = KEYS.find((it) => slotOf(nameOf(it)) < 8_192)!;
      const [source, target] = [cluster.nodes[0]!, cluster.nodes[1]!];
      const slot = slotOf(nameOf(key));
      await cluster.beginMove(slot, source, target);
      await cluster.moveKeys(slot, source, target);
      await cluster.endMove(slot, source, target);
      // It is told to go where it cannot: there is no other way to a node.
      proxies[1]!.cut();
      const moved = held.filter((hold) => hold.key === key);
      await expect(store.renew(moved)).rejects.toThrow();
      proxies[1]!.heal();
      await until(() => store.renew(held).then((all) => all.every((it) => it === 'renewed')));
      for (const hold of held) expect(await store.release(hold, {})).toBe(true);
      await cluster.beginMove(slot, target, source);
      await cluster.moveKeys(slot, target, source);
      await cluster.endMove(slot, target, source);
    }
  });

  it('say TRYAGAIN of a slot that is on its way: what was asked is asked again, until it is there (rule 6)', async () => {
    const store = storeOf({ cluster: cluster.seeds });
    const held = await take(store, 'lease/away', { ttl: 60_000 });
    const slot = slotOf(nameOf(held.key));
    const source = await cluster.ownerOf(nameOf(held.key));
    const target = cluster.nodes.find((node) => node !== source)!;
    await cluster.beginMove(slot, source, target);
    // It has the record and not the line, which may be at the other node.
    await expect(
      cluster.ask(source, 'EXISTS', nameOf(held.key), `${nameOf(held.key)}:line`),
    ).rejects.toThrow('TRYAGAIN');
    let freed: boolean | undefined;
    const releasing = store.release(held, {}).then((is) => (freed = is));
    const tried = async (): Promise<number> => {
      const info = (await cluster.ask(source, 'INFO', 'errorstats')) as string;
      return Number(/TRYAGAIN:count=(\d+)/.exec(info)?.[1] ?? 0);
    };
    const before = await tried();
    await until(async () => (await tried()) > before + 1);
    expect(freed).toBeUndefined();
    // What needs the record alone is answered meanwhile.
    expect(await store.renew([held])).toEqual(['renewed']);
    await cluster.moveKeys(slot, source, target);
    await cluster.endMove(slot, source, target);
    await releasing;
    expect(freed).toBe(true);
    expect((await take(store, held.key)).fence).toBeGreaterThan(held.fence);
  });

  it('say TRYAGAIN for too long: nobody knows, and a claim is not made after its deadline (rules 2 and 6)', async () => {
    const store = storeOf({ cluster: cluster.seeds });
    const held = await take(store, 'lease/for long', { ttl: 60_000 });
    const slot = slotOf(nameOf(held.key));
    const source = await cluster.ownerOf(nameOf(held.key));
    const target = cluster.nodes.find((node) => node !== source)!;
    await cluster.beginMove(slot, source, target);
    const claim = claimOf(held.key, { permits: 2, patience: 1_000 });
    await expect(store.acquire(claim)).rejects.toThrow('TRYAGAIN');
    await expect(store.release(held, {})).rejects.toThrow('TRYAGAIN');
    await cluster.moveKeys(slot, source, target);
    await cluster.endMove(slot, source, target);
    expect(await store.release(held, {})).toBe(true);
    expect(await store.inspect(held.key)).toBeNull();
  });

  it('say CLUSTERDOWN: nobody knows, and all goes on when they are well again (rule 6)', async () => {
    const store = storeOf({ cluster: cluster.seeds });
    const held = await take(store, 'lease/down', { ttl: 60_000 });
    const node = await cluster.ownerOf(nameOf(held.key));
    const other = await until(async () => {
      const key = `lease/other ${Math.random()}`;
      return (await cluster.ownerOf(nameOf(key))) === node ? key : undefined;
    });
    // Of its own: it knows nobody then who has the slot, and nobody tells it otherwise.
    const slot = slotOf(nameOf(held.key)) ^ 1;
    await cluster.ask(node, 'CLUSTER', 'DELSLOTS', slot);
    await until(async () =>
      String(await cluster.ask(node, 'CLUSTER', 'INFO')).includes('state:fail'),
    );
    await expect(store.renew([held])).rejects.toThrow('CLUSTERDOWN');
    await expect(store.acquire(claimOf(other))).rejects.toThrow('CLUSTERDOWN');
    await expect(store.release(held, {})).rejects.toThrow('CLUSTERDOWN');
    await cluster.ask(node, 'CLUSTER', 'ADDSLOTS', slot);
    await until(() => cluster.isUp());
    expect(await store.renew([held])).toEqual(['renewed']);
    expect(await store.release(held, {})).toBe(true);
    await take(store, other);
  });
});

describe('A node of a cluster behind TLS', () => {
  it('is reached with the TLS settings of the options, or of the user’s client', async () => {
    const certificates = makeCertificates();
    closing.push(() => certificates.remove());
    const { ca } = certificates;
    const args = Object.entries({
      'ca-cert-file': certificates.file('ca'),
      'cert-file': certificates.file('cert'),
      'key-file': certificates.file('key'),
      'auth-clients': 'no',
      cluster: 'yes',
    }).flatMap(([name, value]) => [`--tls-${name}`, value]);
    const ports = [await freePort(true), await freePort(true)];
    const cluster = await startPrimaries(2, args, ports);
    closing.push(() => cluster.stop());
    const seeds = [{ host: '127.0.0.1', port: ports[0]! }];
    const client = new Cluster(seeds, { lazyConnect: true, redisOptions: { tls: { ca } } });
    for (const store of [storeOf({ cluster: seeds, tls: { ca } }), storeOf(client)]) {
      const held = await Promise.all(KEYS.map((key) => take(store, key)));
      expect(await store.renew(held)).toEqual(held.map(() => 'renewed'));
      for (const hold of held) expect(await store.release(hold, {})).toBe(true);
    }
    const distrusting = storeOf({ cluster: seeds, tls: {} });
    await expect(distrusting.open()).rejects.toThrow();
  });
});

describe('A Cluster client', () => {
  it('with useSRVRecords is refused by name', () => {
    const client = new Cluster([{ host: 'localhost' }], { useSRVRecords: true, lazyConnect: true });
    expect(() => new RedisLeaseStore(client)).toThrow(new TypeError(SRV_CLUSTER()));
  });
});
