import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { CLAIM_TOO_LATE, NOT_CONNECTED } from '../../lib/lease.messages.js';
import type { Claim, Grant, Refusal } from '../../lib/stores/lease-store.js';
import { subscriberFor } from '../../lib/stores/redis/redis-connection.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { RedisLine } from '../../lib/stores/redis/redis-line.js';
import { scripts } from '../../lib/stores/redis/scripts.js';
import { claimOf, take } from '../support/claims.js';
import { bulk, startFakeRedis } from '../support/fake-redis.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { LONG, Waiter } from '../support/waiter.js';

let server: RedisServer;
let admin: Redis;
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url, { retryStrategy: () => 5 });
  admin.on('error', () => undefined);
});
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
  await until(async () => (await listeners()) === 0);
  await admin.flushall();
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

function storeOf(to: string | RedisOptions = server.url): RedisLeaseStore {
  const store = new RedisLeaseStore(to);
  closing.push(() => store.close());
  return store;
}

function engineOf(store: RedisLeaseStore, ttl = 10_000): LeaseEngine {
  const engine = new LeaseEngine({
    store,
    namespace: 'lease',
    instance: 'test',
    ttl,
    wait: 20_000,
  });
  closing.unshift(() => engine.close(0, 0));
  return engine;
}

/** Connections that subscribe. */
async function listeners(): Promise<number> {
  const list = (await admin.client('LIST', 'TYPE', 'PUBSUB')) as string;
  return list.split('\n').filter((line) => line !== '').length;
}

describe('A waiter in line whose process is gone', () => {
  let store: RedisLeaseStore;
  let held: Claim;
  let goes: () => Promise<void>;

  beforeEach(async () => {
    store = storeOf();
    held = await take(store, 'lease/gone', { ttl: LONG });
    const proxy = await startFaultProxy(server.port);
    closing.push(() => proxy.close());
    const dead = new Waiter(storeOf(proxy.url), held.key, { waited: 1_000 });
    await dead.stand();
    goes = async () => {
      const before = await listeners();
      proxy.cut();
      await until(async () => (await listeners()) < before);
    };
  });

  it('is passed over when the key is released (rule 10)', async () => {
    const next = new Waiter(store, held.key);
    await next.stand();
    await goes();
    await store.release(held, {});
    await next.turn();
  });

  it('leaves the key free when nobody else waits', async () => {
    await goes();
    expect(await store.release(held, {})).toBe(true);
    expect(await store.inspect(held.key)).toBeNull();
    await take(store, held.key);
  });

  it('is passed over when the key is handed over', async () => {
    await goes();
    const next = claimOf(held.key, { waited: 0 });
    expect(await store.handOver(held, next, () => undefined)).toMatchObject({
      freed: true,
      answer: { granted: true },
    });
  });

  it('is passed over with hundreds of its like, and is not in line any more', async () => {
    const line = 'lease:{gone}:line';
    const dead = Array.from({ length: 300 }, (_, i) => `${randomUUID()} 1000 g nobody:${i} i`);
    await admin.zadd(line, ...dead.flatMap((place, i) => [i, place]));
    const next = new Waiter(store, held.key);
    await next.stand();
    await goes();
    await store.release(held, {});
    await next.turn();
    expect(await admin.exists(line)).toBe(0);
  });
});

describe('A waiter whose claim was long on its way', () => {
  it('goes before those who asked after it, though they were in line first (rule 10)', async () => {
    const proxy = await startFaultProxy(server.port);
    closing.push(() => proxy.close());
    const near = storeOf();
    const far = storeOf(proxy.url);
    const held = await take(near, 'lease/far', { ttl: LONG });
    // Both know the server's clock and listen.
    await Promise.all([
      new Waiter(near, 'lease/far').stand(),
      new Waiter(far, 'lease/far').stand(),
    ]);
    const first = new Waiter(far, 'lease/far');
    const second = new Waiter(near, 'lease/far');
    proxy.stall();
    const since = performance.now();
    const asked = first.ask();
    await until(() => performance.now() - since > 30);
    await second.stand();
    proxy.heal();
    await asked;
    const order: string[] = [];
    const line = await admin.zrange('lease:{far}:line', '0', '-1');
    for (const place of line) order.push(place.split(' ')[0]!);
    expect(order.slice(2)).toEqual([first.claim.token, second.claim.token]);
    await near.release(held, {});
  });

  it('gains a second at most by a wrong idea of the clock, and never stands behind who comes later', async () => {
    const held = await take(storeOf(), 'lease/clocks', { ttl: LONG });
    const [lease, line] = ['lease:{clocks}', 'lease:{clocks}:line'];
    const deadline = `${Date.now() + 60_000}000`;
    const stand = (token: string, since: string): Promise<unknown> => {
      const waits = `5000000 ${since} g nestjs-lease:nobody`;
      const args = [deadline, token, '000000010000', 'i', waits];
      return admin.eval(scripts.enqueue.source, 2, lease, line, ...args);
    };
    await stand('early', '1000000000000000');
    await stand('late', '9999999999999999');
    const began = await admin.zrange(line, '0', '-1', 'WITHSCORES');
    const [early, late] = [Number(began[1]), Number(began[3])];
    const [seconds, micros] = await admin.time();
    const now = Number(seconds) * 1e6 + Number(micros);
    expect(late - early).toBeGreaterThanOrEqual(1_000_000);
    expect(late - early).toBeLessThan(1_100_000);
    expect(late).toBeLessThanOrEqual(now - 5_000_000);
    expect(held.key).toBe('lease/clocks');
  });
});

describe('A waiter whose subscription is cut', () => {
  it('is called when it breaks, and again when it listens anew (rule 10)', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/cut', { ttl: LONG });
    const waiter = new Waiter(store, held.key);
    await waiter.stand();
    const { calls } = waiter;
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await until(() => waiter.calls >= calls + 2);
    await waiter.stand();
    await store.release(held, {});
    await waiter.turn();
  });

  it('gets a key that was released while nobody heard it (rule 10)', async () => {
    const held = await take(storeOf(), 'lease/deaf', { ttl: LONG });
    const engine = engineOf(storeOf());
    const lease = engine.acquire('deaf');
    await until(async () => (await admin.exists('lease:{deaf}:line')) === 1);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await storeOf().release(held, {});
    expect((await lease).isHeld).toBe(true);
  });
});

describe.each<[string, RedisOptions]>([
  ['', {}],
  [' with a key prefix and a database', { keyPrefix: 'app 1:', db: 2 }],
])('A turn that is told%s', (_, options) => {
  let store: RedisLeaseStore;
  let db: Redis;
  let line: string;

  beforeEach(() => {
    store = storeOf({ port: server.port, ...options });
    db = new Redis(server.url, { db: options.db ?? 0 });
    line = `${options.keyPrefix ?? ''}lease:{told}:line`;
    closing.push(() => db.disconnect());
  });

  it('to a token that has left is given back at once (rule 2)', async () => {
    const held = await take(store, 'lease/told', { ttl: LONG });
    const left = new Waiter(store, held.key, { waited: 1_000 });
    const next = new Waiter(store, held.key);
    await left.stand();
    const places = await db.zrange(line, '0', '-1', 'WITHSCORES');
    await next.stand();
    await store.release(left.claim, {});
    // As a claim that was executed after it had left.
    await db.zadd(line, places[1]!, places[0]!);
    await store.release(held, {});
    await next.turn();
    expect(left.grant).toBeUndefined();
  });

  it('after an answer that said the same takes nothing away (rule 1)', async () => {
    const held = await take(store, 'lease/told', { ttl: LONG });
    const waiter = new Waiter(store, held.key);
    const other = new Waiter(store, 'lease/other');
    await take(store, other.claim.key, { ttl: LONG });
    await waiter.stand();
    await other.stand();
    const [place] = await db.zrange(line, '0', '-1');
    const channel = place!.split(' ')[3]!;
    // Not told yet, as if the other connection were slower.
    await db.zrem(line, place!);
    await store.release(held, {});
    const { fence } = (await waiter.ask()) as Grant;
    const { calls } = other;
    await db.publish(channel, `granted ${fence} ${waiter.claim.token} ${line.slice(0, -5)}`);
    await db.publish(channel, `free ${other.claim.token}`);
    await until(() => other.calls > calls);
    expect(await store.renew([waiter.claim])).toEqual(['renewed']);
    expect(await store.release(waiter.claim, {})).toBe(true);
  });

  it('late, after the key was given back, takes it from nobody else (rule 7)', async () => {
    const held = await take(store, 'lease/told', { ttl: LONG });
    const waiter = new Waiter(store, held.key);
    const other = new Waiter(store, 'lease/other');
    await take(store, other.claim.key, { ttl: LONG });
    await waiter.stand();
    await other.stand();
    const channel = (await db.zrange(line, '0', '-1'))[0]!.split(' ')[3]!;
    await store.release(held, {});
    const { fence } = await waiter.turn();
    await store.release(waiter.claim, {});
    const successor = await take(store, held.key, { ttl: LONG });
    const { calls } = other;
    await db.publish(channel, `granted ${fence} ${waiter.claim.token} ${line.slice(0, -5)}`);
    await db.publish(channel, `free ${other.claim.token}`);
    await until(() => other.calls > calls);
    expect(await store.renew([successor])).toEqual(['renewed']);
  });

  it('in no words of ours is not listened to', async () => {
    const held = await take(store, 'lease/told', { ttl: LONG });
    const waiter = new Waiter(store, held.key);
    await waiter.stand();
    const channel = (await db.zrange(line, '0', '-1'))[0]!.split(' ')[3]!;
    const { token } = waiter.claim;
    const { calls } = waiter;
    for (const fence of ['0', '-1', 'x', '', '1e400', '9007199254740993']) {
      await db.publish(channel, `granted ${fence} ${token} lease:{told}`);
    }
    for (const news of ['', ' ', 'granted', 'granted 5', 'given', token]) {
      await db.publish(channel, news);
    }
    await db.publish(channel, `free ${token}`);
    await until(() => waiter.calls > calls);
    expect([waiter.calls, waiter.grant]).toEqual([calls + 1, undefined]);
  });
});

describe('A waiter that gets a permit without being told', () => {
  it('stands in line no more: a turn told to it would be lost (rule 10)', async () => {
    const store = storeOf();
    const permit = { permits: 2, ttl: LONG };
    const held = await take(store, 'lease/permit', permit);
    await take(store, held.key, permit);
    const waiter = new Waiter(store, held.key, permit);
    await waiter.stand();
    await store.release(held, { keepFor: 20 });
    await until(async () => (await waiter.ask()).granted);
    expect(await admin.exists('lease:{permit}:line')).toBe(0);
  });
});

describe('The subscription', () => {
  const isHeard = (line: RedisLine): boolean => line.channelFor('lease/a') !== undefined;

  it('is opened when somebody waits, and is one for all keys', async () => {
    const store = storeOf();
    const keys = Array.from({ length: 10 }, (_, i) => `lease/shared-${i}`);
    for (const key of keys) await take(store, key, { ttl: LONG });
    expect(await listeners()).toBe(0);
    const waiters = keys.map((key) => new Waiter(store, key));
    for (const waiter of waiters) await waiter.stand();
    expect(await listeners()).toBe(1);
  });

  it('is dropped when nobody has waited for a while, and opened again', async () => {
    const line = new RedisLine({ subscribe: () => subscriberFor(server.url) }, () => undefined, 20);
    closing.push(() => line.close());
    for (const round of [1, 2]) {
      const [one, two] = [claimOf(`lease/${round}`), claimOf(`lease/${round}`)];
      let calls = 0;
      line.enter(one, () => calls++);
      line.enter(two, () => calls++);
      await until(() => calls === 2);
      expect([isHeard(line), await listeners()]).toEqual([true, 1]);
      line.leave(one.token);
      line.leave(two.token);
      await until(async () => (await listeners()) === 0);
      expect(isHeard(line)).toBe(false);
    }
  });

  it('is kept while somebody waits, however long nobody new does', async () => {
    const line = new RedisLine({ subscribe: () => subscriberFor(server.url) }, () => undefined, 20);
    closing.push(() => line.close());
    const [stays, leaves] = [claimOf('lease/a'), claimOf('lease/a')];
    line.enter(stays, () => undefined);
    await until(() => isHeard(line));
    line.enter(leaves, () => undefined);
    line.leave(leaves.token);
    line.enter(leaves, () => undefined);
    line.leave(leaves.token);
    const since = performance.now();
    await until(() => performance.now() - since > 60);
    expect([isHeard(line), await listeners()]).toEqual([true, 1]);
  });

  it('that broke before it listened is tried again (rule 10)', async () => {
    let tries = 0;
    const fake = await startFakeRedis(([name, channel]) => {
      if (name !== 'SUBSCRIBE') return undefined;
      if (++tries > 1) return `*3\r\n${bulk('subscribe')}${bulk(channel!)}:1\r\n`;
      fake.dropConnections();
      return '';
    });
    const line = new RedisLine({ subscribe: () => subscriberFor(fake.url) }, () => undefined);
    closing.push(() => line.close().then(() => fake.close()));
    line.enter(claimOf('lease/a'), () => undefined);
    await until(() => isHeard(line));
    expect(tries).toBe(2);
  });

  it('is closed with the store, and not opened by a claim after that', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/closed', { ttl: LONG });
    const waiter = new Waiter(store, held.key);
    await waiter.stand();
    await store.close();
    expect(await listeners()).toBe(0);
    await expect(waiter.ask()).rejects.toThrow(NOT_CONNECTED());
    expect(await listeners()).toBe(0);
  });

  it('goes when the last has left, also when it could not tell the server (rule 10)', async () => {
    const own = await startRedis();
    const store = new RedisLeaseStore(own.url);
    const held = await take(store, 'lease/alone', { ttl: LONG });
    const waiter = new Waiter(store, held.key);
    await waiter.stand();
    await own.kill();
    await expect(store.release(waiter.claim, {})).rejects.toThrow();
    const { calls } = waiter;
    await own.start();
    await until(() =>
      store.open().then(
        () => true,
        () => false,
      ),
    );
    // Another waits, and is called when the subscription is back; who left is not.
    const again = await take(store, 'lease/again', { ttl: LONG });
    await new Waiter(store, again.key).stand();
    expect(waiter.calls).toBe(calls);
    await store.close();
    await own.stop();
  });
});

describe('Waiting goes on', () => {
  it('when the server forgets its scripts', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/flushed', { ttl: LONG });
    const [first, second] = [2_000, 1_000].map((waited) => new Waiter(store, held.key, { waited }));
    await first!.stand();
    await admin.script('FLUSH');
    await second!.stand();
    await admin.script('FLUSH');
    await store.release(held, {});
    await first!.turn();
    await admin.script('FLUSH');
    await store.release(first!.claim, {});
    await second!.turn();
  });

  it('when the server is restarted and has forgotten everything (rule 10)', async () => {
    const own = await startRedis();
    const stores = [1, 2, 3].map(() => new RedisLeaseStore(own.url));
    const [holder, ...engines] = stores.map(
      (store) =>
        new LeaseEngine({ store, namespace: 'lease', instance: 'i', ttl: 2_000, wait: 20_000 }),
    );
    const held = await holder!.acquire('restarted');
    const waiting = engines.map((engine) => engine.acquire('restarted'));
    const observer = new Redis(own.url, { retryStrategy: () => 5 });
    observer.on('error', () => undefined);
    await until(async () => (await observer.zcard('lease:{restarted}:line')) === 2);
    await own.restart();
    const first = await Promise.race(waiting);
    expect(first.fence).toBeGreaterThan(held.fence);
    await first.release();
    const both = await Promise.all(waiting);
    expect(both.filter(({ isHeld }) => isHeld)).toHaveLength(1);
    await Promise.all([holder!, ...engines].map((engine) => engine.close(0, 0)));
    await Promise.all(stores.map((store) => store.close()));
    observer.disconnect();
    await own.stop();
  });
});

describe('What is asked for in the same moment', () => {
  let store: RedisLeaseStore;

  beforeEach(async () => {
    store = storeOf();
    await store.open();
    // All scripts are known.
    await store.release(await take(store, 'lease/first'), {});
    const [first] = await Promise.all([take(store, 'lease/first'), take(store, 'lease/second')]);
    await Promise.all([store.release(first, {}), take(store, 'lease/third')]);
  });

  const scriptsRun = async (): Promise<number> => {
    const stats = (await admin.info('commandstats')) as string;
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  const keysOf = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => `lease/batch-${i}`);

  it('goes in few commands, and each has its own answer', async () => {
    const keys = keysOf(200);
    const held = await Promise.all(keys.slice(0, 100).map((key) => take(store, key)));
    const others = keys.slice(50, 150).map((key) => claimOf(key));
    await admin.config('RESETSTAT');
    const [freed, answers] = await Promise.all([
      Promise.all(
        // Every other of them was never held by who says so.
        held.map((hold, i) => store.release(i % 2 ? hold : claimOf(hold.key), {})),
      ),
      Promise.all(others.map((claim) => store.acquire(claim))),
    ]);
    expect(await scriptsRun()).toBeLessThanOrEqual(8);
    expect(freed).toEqual(held.map((_, i) => i % 2 === 1));
    expect(answers.map(({ granted }) => granted)).toEqual(
      others.map((_, i) => i >= 50 || i % 2 === 1),
    );
    const records = await Promise.all(others.map(({ key }) => store.inspect(key)));
    const fences = answers.map((answer, i) =>
      answer.granted ? answer.fence : (held[50 + i] as unknown as Grant).fence,
    );
    expect(records.map((record) => record!.holders[0]!.fence)).toEqual(fences);
  });

  it('may be more than fits in one command', async () => {
    const keys = keysOf(500);
    const held = await Promise.all(keys.map((key) => take(store, key)));
    expect(await store.renew(held)).toEqual(keys.map(() => 'renewed'));
    expect(await Promise.all(held.map((hold) => store.release(hold, {})))).toEqual(
      keys.map(() => true),
    );
  });

  it('is granted once if it is the same key (rule 1)', async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => store.acquire(claimOf('lease/one'))),
    );
    expect(answers.filter(({ granted }) => granted)).toHaveLength(1);
  });

  it.each<[string, (name: string) => Promise<unknown>]>([
    ['of another type', (name) => admin.lpush(name, 'x')],
    ['of another program', (name) => admin.set(name, 'something else')],
  ])('does not suffer from one key with a value %s (rule 14)', async (_, spoil) => {
    const keys = keysOf(50);
    await spoil('lease:{batch-20}');
    const claims = keys.map((key) => claimOf(key));
    const answers = await Promise.allSettled(claims.map((claim) => store.acquire(claim)));
    const outcomes = answers.map((answer) =>
      answer.status === 'fulfilled' ? answer.value.granted : 'error',
    );
    expect(outcomes).toEqual(keys.map((_, i) => (i === 20 ? 'error' : true)));
  });

  it('does not suffer from one key that was overwritten while it was held (rules 6 and 7)', async () => {
    const keys = keysOf(50);
    const held = await Promise.all(keys.map((key) => take(store, key)));
    await admin.del('lease:{batch-20}');
    await admin.lpush('lease:{batch-20}', 'x');
    const renewed = await store.renew(held);
    expect(renewed).toEqual(keys.map((_, i) => (i === 20 ? 'unknown' : 'renewed')));
    const freed = await Promise.allSettled(held.map((hold) => store.release(hold, {})));
    expect(freed.map((one) => (one.status === 'fulfilled' ? one.value : 'error'))).toEqual(
      keys.map((_, i) => (i === 20 ? 'error' : true)),
    );
  });

  it('never says that a key was lost that a failing command may have freed (rule 7)', async () => {
    const keys = keysOf(10);
    const held = await Promise.all(keys.map((key) => take(store, key)));
    // Its line is no line: the command fails in the middle.
    await new Waiter(store, keys[5]!).stand();
    await admin.set('lease:{batch-5}:line', 'x');
    const freed = await Promise.allSettled(held.map((hold) => store.release(hold, {})));
    expect(freed.map((one) => one.status === 'fulfilled' && one.value === false)).toEqual(
      keys.map(() => false),
    );
    expect(freed.slice(6)).toEqual(keys.slice(6).map(() => ({ status: 'fulfilled', value: true })));
  });

  it('may be a release and the claim of the same key, in one command', async () => {
    const held = await take(store, 'lease/one');
    await admin.config('RESETSTAT');
    const freeing = store.release(held, { relaxed: true });
    const taking = store.acquire(claimOf('lease/one'));
    expect(await freeing).toBe(true);
    expect(await taking).toMatchObject({ granted: true });
    expect(((await taking) as Grant).fence).toBeGreaterThan((held as unknown as Grant).fence);
    expect(await scriptsRun()).toBe(1);
  });

  it('has each its own answer where releases and claims go together and not all is well', async () => {
    const keys = keysOf(20);
    const held = await Promise.all(keys.slice(0, 10).map((key) => take(store, key)));
    const others = await Promise.all(keys.slice(15).map((key) => take(store, key)));
    await admin.config('RESETSTAT');
    const [freed, answers] = await Promise.all([
      Promise.all(held.map((hold, i) => store.release(i % 2 ? hold : claimOf(hold.key), {}))),
      Promise.all(keys.slice(10).map((key) => store.acquire(claimOf(key)))),
    ]);
    expect(await scriptsRun()).toBe(1);
    expect(freed).toEqual(held.map((_, i) => i % 2 === 1));
    expect(answers.map(({ granted }) => granted)).toEqual(answers.map((_, i) => i < 5));
    expect(answers[5]).toMatchObject({ reason: 'held', retryAfterMs: expect.any(Number) });
    expect(others).toHaveLength(5);
  });

  it('does not suffer from a claim for a key that is none, nor does a release beside it (rules 7 and 14)', async () => {
    const held = await take(store, 'lease/mine');
    await admin.set('lease:{batch-0}', 'something else');
    const [freed, spoiled, granted] = await Promise.allSettled([
      store.release(held, {}),
      store.acquire(claimOf('lease/batch-0')),
      store.acquire(claimOf('lease/batch-1')),
    ]);
    // It was freed before the command failed, and so nobody can tell.
    expect(freed).toMatchObject({ status: 'rejected' });
    expect(spoiled).toMatchObject({ status: 'rejected' });
    expect(granted).toMatchObject({ status: 'fulfilled', value: { granted: true } });
    expect(await store.inspect('lease/mine')).toBeNull();
    expect(await admin.get('lease:{batch-0}')).toBe('something else');
  });

  it('leaves though nobody waits for it and nothing follows', async () => {
    const held = await take(store, 'lease/one');
    expect(await store.release(held, { relaxed: true })).toBe(true);
  });

  it('is not overtaken by a look at the same key', async () => {
    const held = await take(store, 'lease/one');
    store.release(held, { relaxed: true }).catch(() => undefined);
    expect(await store.inspect('lease/one')).toBeNull();
  });

  it('leaves though the store is closed in the same moment', async () => {
    const held = await take(store, 'lease/one');
    store.release(held, { relaxed: true }).catch(() => undefined);
    await store.close();
    const other = storeOf();
    await until(async () => (await other.inspect('lease/one')) === null);
  });

  it('waits each for as long as it can (rule 2)', async () => {
    await store.inspect('lease/first');
    await server.pause();
    const since = performance.now();
    const brief = store.acquire(claimOf('lease/brief', { patience: 50 }));
    const patient = store.acquire(claimOf('lease/patient', { patience: 10_000 }));
    await until(() => performance.now() - since > 50);
    server.resume();
    const refusal = await brief;
    expect(refusal).toMatchObject({ granted: false, reason: 'unavailable' });
    expect((refusal as Refusal).cause).toEqual(new Error(CLAIM_TOO_LATE()));
    expect(await patient).toMatchObject({ granted: true });
    expect(await store.inspect('lease/brief')).toBeNull();
  });
});

describe('Instances and tokens of any shape', () => {
  const STRANGE = [
    '',
    ' ',
    'a b',
    'a  b ',
    '%',
    '%20',
    'ключ 🔑',
    'a\tb',
    'a\nb',
    'a:b',
    ':',
    'a ',
  ];

  it.each([1, 2])('are shown as they are, permits: %i (rule 14)', async (permits) => {
    const store = storeOf();
    for (const [i, instance] of STRANGE.entries()) {
      const key = `lease/instance ${permits} ${i}`;
      await take(store, key, { instance, permits });
      const { holders } = (await store.inspect(key))!;
      expect(holders.map((holder) => holder.instance)).toEqual([instance]);
    }
  });

  it.each([1, 2])('hold, renew and release, permits: %i (rule 14)', async (permits) => {
    const store = storeOf();
    for (const token of [...STRANGE, 'kept:1']) {
      const held = await take(store, 'lease/token', { token, permits, ttl: LONG });
      expect(await store.acquire(held)).toMatchObject({ granted: true, fence: held.fence });
      expect(await store.renew([held])).toEqual(['renewed']);
      const { holders } = (await store.inspect(held.key))!;
      expect(holders.map(({ owner }) => owner)).toEqual([token.slice(0, 8)]);
      expect(await store.release(held, {})).toBe(true);
    }
  });

  it('wait in line and are told', async () => {
    const store = storeOf();
    for (const [i, token] of STRANGE.entries()) {
      const held = await take(store, `lease/line ${i}`, { ttl: LONG });
      const waiter = new Waiter(store, held.key, { token, instance: token });
      await waiter.stand();
      await store.release(held, {});
      await waiter.turn();
      expect(await store.renew([waiter.claim])).toEqual(['renewed']);
      expect((await store.inspect(held.key))!.holders[0]!.instance).toBe(token);
      expect(await store.release(waiter.claim, {})).toBe(true);
    }
  });

  it.each([1, 2])('are never taken for one another, permits: %i (rule 7)', async (permits) => {
    const store = storeOf();
    const held = await take(store, 'lease/near', {
      token: 'abc',
      instance: 'x y',
      ttl: LONG,
      permits,
    });
    const near = [
      'ab',
      'abc ',
      'abc x',
      'abc x y',
      'abcd',
      'ABC',
      'bc',
      '',
      ' ',
      '%',
      'abc\0',
      '.*',
      'x y',
    ];
    for (const token of near) {
      const stranger = { ...held, token };
      expect(await store.renew([stranger])).toEqual(['gone']);
      expect(await store.release(stranger, {})).toBe(false);
      expect(await store.release(stranger, { keepFor: 1 })).toBe(false);
      const claim = { ...stranger, permits: 1, instance: 'x y' };
      expect(await store.acquire(claim)).toMatchObject({ granted: false });
      const over = await store.handOver(
        { ...stranger, permits: 1 },
        claimOf(held.key),
        () => undefined,
      );
      expect(over).toMatchObject({ freed: false, answer: { granted: false } });
    }
    expect(await store.renew([held])).toEqual(['renewed']);
  });
});
