import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { slotOf } from '../../lib/stores/redis/cluster/slot.js';
import { subscriberFor } from '../../lib/stores/redis/redis-connection.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { RedisLine } from '../../lib/stores/redis/redis-line.js';
import { claimOf, take } from '../support/claims.js';
import {
  NEVER,
  startPrimaries,
  startRedisCluster,
  type RedisCluster,
} from '../support/redis-cluster.js';
import type { RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { LONG, Waiter } from '../support/waiter.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster(NEVER);
}, 40_000);
afterAll(() => cluster.stop());

function storeIn({ seeds }: RedisCluster, options: object = {}): RedisLeaseStore {
  const store = new RedisLeaseStore({ cluster: seeds, keyPrefix: 'app:', ...options });
  closing.push(() => store.close());
  return store;
}

const nameOf = (key: string): string => `app:lease:{${key}}`;

/** Where those in line are told. */
async function channelsIn(key: string): Promise<string[]> {
  const owner = await cluster.ownerOf(nameOf(key));
  const line = (await cluster.ask(owner, 'ZRANGE', `${nameOf(key)}:line`, 0, -1)) as string[];
  return line.map((place) => place.split(' ')[3]!);
}

/** How many messages of a kind the node has sent to others of the cluster. */
async function sent(node: RedisServer, kind: 'publish' | 'publishshard'): Promise<number> {
  const info = (await cluster.ask(node, 'CLUSTER', 'INFO')) as string;
  return Number(new RegExp(`messages_${kind}_sent:(\\d+)`).exec(info)?.[1] ?? 0);
}

/** A hash tag in another slot of the same node. */
async function sameNodeAs(tag: string): Promise<string> {
  const owner = await cluster.ownerOf(tag);
  for (let i = 0; ; i++) if ((await cluster.ownerOf(`${i}`)) === owner) return `${i}`;
}

/** A key on another node than the first has. */
async function keyApartFrom(key: string): Promise<string> {
  const owner = await cluster.ownerOf(nameOf(key));
  const keys = Array.from({ length: 20 }, (_, i) => `${key} ${i}`);
  const owners = await Promise.all(keys.map((it) => cluster.ownerOf(nameOf(it))));
  return keys.find((_, i) => owners[i] !== owner)!;
}

/** One of each store, the first since longest: by seconds, that nobody is wrong about it. */
async function standing(stores: readonly RedisLeaseStore[], key: string): Promise<Waiter[]> {
  const waiters = stores.map(
    (store, i) => new Waiter(store, key, { waited: 2_000 * (stores.length - i) }),
  );
  for (const waiter of waiters) await waiter.stand();
  return waiters;
}

/** In which order they have their turns, each of which ends with a release. */
async function servedIn(
  waiters: readonly Waiter[],
): Promise<{ order: number[]; fences: number[] }> {
  const order: number[] = [];
  const fences: number[] = [];
  while (order.length < waiters.length) {
    const next = await until(() =>
      waiters.find(({ grant }, i) => grant !== undefined && !order.includes(i)),
    );
    order.push(waiters.indexOf(next));
    fences.push(next.grant!.fence);
    await next.store.release(next.claim, {});
  }
  return { order, fences };
}

describe('A turn in a cluster', () => {
  it('is told in order to several processes, and to no node that does not have the slot (rule 10)', async () => {
    const holder = storeIn(cluster);
    const held = await take(holder, 'lease/turns', { ttl: LONG });
    const owner = await cluster.ownerOf(nameOf('turns'));
    const others = cluster.nodes.filter((node) => node !== owner);
    const overheard = new Map(others.map(({ port }) => [port, [] as string[]]));
    for (const { port } of others) {
      const ear = new Redis({ port });
      closing.push(() => ear.disconnect());
      ear.on('pmessage', (_pattern, channel) => overheard.get(port)!.push(channel));
      await ear.psubscribe('nestjs-lease:*');
    }
    const stores = [1, 2, 3].map(() => storeIn(cluster));
    const waiters = await standing([...stores, ...stores, ...stores], held.key);
    const [plain, sharded] = [await sent(owner, 'publish'), await sent(owner, 'publishshard')];
    await holder.release(held, {});
    const served = await servedIn(waiters);
    expect(served.order).toEqual([...waiters.keys()]);
    expect(served.fences).toEqual(served.fences.toSorted((a, b) => a - b));
    expect(await sent(owner, 'publish')).toBe(plain);
    // To its replica.
    expect(await sent(owner, 'publishshard')).toBe(sharded + waiters.length);
    // What is published after it is heard after it, once there is a link to carry it.
    await until(async () => {
      await cluster.ask(owner, 'PUBLISH', 'nestjs-lease:last', '');
      return [...overheard.values()].every(({ length }) => length > 0);
    });
    expect(new Set([...overheard.values()].flat())).toEqual(new Set(['nestjs-lease:last']));
  });

  it('is told on a channel in the slot of its key', async () => {
    const store = storeIn(cluster);
    const holder = storeIn(cluster);
    for (const key of ['slots', await keyApartFrom('slots')]) {
      const held = await take(holder, `lease/${key}`, { ttl: LONG });
      await new Waiter(store, held.key).stand();
      const [channel] = await channelsIn(key);
      expect(channel).toMatch(/^nestjs-lease:\{\d+\}:[-0-9a-f]+$/);
      expect(slotOf(channel!)).toBe(slotOf(nameOf(key)));
    }
  });

  it('is told on one channel for all keys of the slot, which is left when nobody waits for any', async () => {
    const { port } = await cluster.ownerOf('one');
    const tagOf = (key: string): string => tags.get(key)!;
    const line = new RedisLine(
      { subscribe: () => subscriberFor({ port }), tagOf },
      () => undefined,
      20,
    );
    closing.push(() => line.close());
    const tags = new Map([
      ['a', 'one'],
      ['b', 'one'],
      ['c', await sameNodeAs('one')],
    ]);
    const channels = async (): Promise<unknown> =>
      ((await cluster.ask({ port } as RedisServer, 'PUBSUB', 'SHARDCHANNELS')) as string[]).length;
    const claims = [...tags.keys()].map((key) => claimOf(key));
    for (const claim of claims) line.enter(claim, () => undefined);
    await until(() => claims.every(({ key }) => line.channelFor(key) !== undefined));
    expect(await channels()).toBe(2);
    line.leave(claims[0]!.token);
    line.leave(claims[1]!.token);
    await until(async () => (await channels()) === 1);
    expect(claims.map(({ key }) => line.channelFor(key) !== undefined)).toEqual([
      false,
      false,
      true,
    ]);
    line.enter(claims[0]!, () => undefined);
    await until(() => line.channelFor('a') !== undefined);
    expect(await channels()).toBe(2);
  });

  it('is nobody’s when who was to have it listens at a replica alone: nobody else believes in it (rule 1)', async () => {
    const holder = storeIn(cluster);
    const held = await take(holder, 'lease/replica', { ttl: LONG });
    const waiter = new Waiter(storeIn(cluster), held.key);
    await waiter.stand();
    const owner = await cluster.ownerOf(nameOf('replica'));
    const [channel] = await channelsIn('replica');
    const deaf = channel!.replace(/[^:]+$/, 'elsewhere');
    const ear = new Redis({ port: (await cluster.replicaOf(owner)).port });
    closing.push(() => ear.disconnect());
    const heard: string[] = [];
    ear.on('smessage', (_channel, news) => heard.push(news));
    await ear.ssubscribe(deaf);
    const place = `gone 000000600000 g ${deaf} test`;
    await cluster.ask(owner, 'ZADD', `${nameOf('replica')}:line`, 1, place);
    await holder.release(held, {});
    await waiter.turn();
    await cluster.ask(owner, 'SPUBLISH', deaf, 'last');
    await until(() => heard.length > 0);
    expect(heard).toEqual(['last']);
  });

  it('comes when the slot has moved to another node: who waits is told of that and asks there', async () => {
    const holder = storeIn(cluster);
    const held = await take(holder, 'lease/moves', { ttl: LONG });
    const waiter = new Waiter(storeIn(cluster), held.key);
    await waiter.stand();
    const source = await cluster.ownerOf(nameOf('moves'));
    const target = await cluster.ownerOf(nameOf(await keyApartFrom('moves')));
    const slot = slotOf(nameOf('moves'));
    await cluster.beginMove(slot, source, target);
    await cluster.moveKeys(slot, source, target);
    const { calls } = waiter;
    await cluster.endMove(slot, source, target);
    // Nobody else asks anything meanwhile.
    await until(() => waiter.calls > calls);
    await waiter.stand();
    expect(await holder.release(held, {})).toBe(true);
    expect((await waiter.turn()).fence).toBeGreaterThan(held.fence);
  });

  it('comes after a failover: who waits is told of that and asks the new primary', async () => {
    const holder = storeIn(cluster);
    const held = await take(holder, 'lease/failover', { ttl: LONG });
    const waiter = new Waiter(storeIn(cluster), held.key);
    await waiter.stand();
    const { calls } = waiter;
    await cluster.failOver(await cluster.ownerOf(nameOf('failover')));
    await until(() => waiter.calls > calls);
    await waiter.stand();
    expect(await holder.release(held, {})).toBe(true);
    expect((await waiter.turn()).fence).toBeGreaterThan(held.fence);
  });

  it('comes to those who share a key', async () => {
    const holder = storeIn(cluster);
    const held = await take(holder, 'lease/shared', { ttl: LONG, permits: 2 });
    await take(holder, 'lease/shared', { ttl: LONG, permits: 2 });
    const waiter = new Waiter(storeIn(cluster), held.key, { permits: 2 });
    await waiter.stand();
    const { calls } = waiter;
    await holder.release(held, {});
    await until(() => waiter.calls > calls);
    expect(await waiter.ask()).toMatchObject({ granted: true });
  });
});

describe('A turn in a cluster where not everybody may have channels of slots', () => {
  let small: RedisCluster;
  beforeAll(async () => {
    small = await startPrimaries(1);
  }, 20_000);
  afterAll(() => small.stop());

  const user = async (name: string, ...rules: string[]): Promise<object> => {
    const all = ['on', `>pw-${name}`, '~*', '&*', '+@all'];
    await small.ask(small.nodes[0]!, 'ACL', 'SETUSER', name, 'reset', ...all, ...rules);
    return { username: name, password: `pw-${name}` };
  };
  const line = async (key: string): Promise<string[]> => {
    const places = await small.ask(small.nodes[0]!, 'ZRANGE', `${nameOf(key)}:line`, 0, -1);
    return (places as string[]).map((place) => (place.includes(':{') ? 'shard' : 'plain'));
  };

  it('is told to each in its way, in order (rule 10)', async () => {
    const old = storeIn(small, await user('old', '-ssubscribe'));
    const now = storeIn(small);
    const held = await take(now, 'lease/mixed', { ttl: LONG });
    const waiters = await standing([old, now, old, now], held.key);
    expect(await line('mixed')).toEqual(['plain', 'shard', 'plain', 'shard']);
    await now.release(held, {});
    expect((await servedIn(waiters)).order).toEqual([0, 1, 2, 3]);
  });

  it('is told as before once the user may do less: nobody is forgotten in line', async () => {
    const options = await user('less');
    const [store, holder] = [storeIn(small, options), storeIn(small)];
    const held = await take(holder, 'lease/less', { ttl: LONG });
    const first = new Waiter(store, held.key);
    await first.stand();
    await user('less', '-ssubscribe');
    const other = new Waiter(store, 'lease/less too');
    const heldToo = await take(holder, 'lease/less too', { ttl: LONG });
    const { calls } = first;
    await other.stand();
    await until(() => first.calls > calls);
    await first.stand();
    for (const [waiter, hold] of [
      [first, held],
      [other, heldToo],
    ] as const) {
      await holder.release(hold, {});
      await waiter.turn();
    }
    expect(await line('less')).toEqual([]);
  });

  it('is told as before by a server that has none', async () => {
    const hidden = ['SSUBSCRIBE', 'SUNSUBSCRIBE', 'SPUBLISH'];
    const before7 = await startPrimaries(
      1,
      hidden.flatMap((name) => ['--rename-command', name, '']),
    );
    closing.push(() => before7.stop());
    const store = storeIn(before7);
    const held = await take(store, 'lease/old', { ttl: LONG });
    const waiter = new Waiter(store, held.key);
    await waiter.stand();
    await store.release(held, {});
    await waiter.turn();
  });
});
