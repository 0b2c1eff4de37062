import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { Claim, Grant, Refusal } from '../../lib/stores/lease-store.js';
import { redisKeys } from '../../lib/stores/redis/redis-keys.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

describe('What leases leave in Redis', () => {
  let server: RedisServer;
  let admin: Redis;
  let store: RedisLeaseStore;

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    await admin.flushall();
    store = new RedisLeaseStore(server.url);
  });
  afterEach(() => store.close());

  /** Every name in the database, with the milliseconds it has left; -1 is for ever. */
  const remains = async (): Promise<Map<string, number>> => {
    const names: string[] = [];
    for await (const page of admin.scanStream({ count: 1_000 })) names.push(...(page as string[]));
    const ttls = await admin.pipeline(names.map((name) => ['pttl', name])).exec();
    return new Map(names.map((name, i) => [name, ttls![i]![1] as number]));
  };
  const forEver = async (): Promise<string[]> =>
    [...(await remains())].flatMap(([name, ttl]) => (ttl < 0 ? [name] : []));

  it('of 10,000 keys is nothing that stays for ever, and in the process nothing at all (rule 8)', async () => {
    const options = { store, namespace: 'lease', instance: 'test', ttl: 10_000, wait: 0 };
    const engine = new LeaseEngine(options);
    for (let from = 0; from < 10_000; from += 500) {
      const keys = Array.from({ length: 500 }, (_, i) => `key-${from + i}`);
      await Promise.all(keys.map((key) => engine.run(key, async () => key)));
    }
    expect(await admin.dbsize()).toBe(10_000);
    expect(await forEver()).toEqual([]);
    expect([engine.leases.size, engine.agenda.size, engine.awaited]).toEqual([0, 0, 0]);
    await engine.close(0, 0);
  });

  it('after permits, kept places, units of work and renewals is nothing that stays for ever', async () => {
    const done = { once: 'tick', remember: 60_000 };
    for (const permits of [1, 3]) {
      for (const how of [{}, { keepFor: 50 }, { done }, { keepFor: 60_000, done }]) {
        const key = `lease/${permits} ${JSON.stringify(how)}`;
        const first = await take(store, key, { permits, ttl: 100 });
        await store.renew([first]);
        const second = permits > 1 ? await take(store, key, { permits }) : undefined;
        await store.release(first, how);
        if (second !== undefined) await store.release(second, how);
        await store.acquire(claimOf(key, { permits }));
      }
    }
    expect((await remains()).size).toBeGreaterThan(8);
    expect(await forEver()).toEqual([]);
  });

  it('after claims that were refused is nothing at all', async () => {
    const held = await take(store, 'lease/held');
    const before = [...(await remains()).keys()];
    await store.acquire(claimOf(held.key));
    await store.acquire(claimOf(held.key, { permits: 2 }));
    await store.acquire(claimOf(held.key, { once: 'tick' }));
    await store.renew([claimOf('lease/never'), claimOf('lease/never', { permits: 2 })]);
    await store.release(claimOf('lease/never'), { keepFor: 1_000 });
    await store.release(claimOf('lease/never', { permits: 2 }), { keepFor: 1_000 });
    await store.inspect('lease/never');
    expect([...(await remains()).keys()]).toEqual(before);
  });

  /** Somebody in line: asks until it is. */
  const stand = async (claim: Claim): Promise<Claim> => {
    let calls = 0;
    const ask = (): Promise<Grant | Refusal> => store.enqueue(claim, () => calls++);
    await until(async () => {
      const answer = await ask();
      return answer.granted || answer.inLine;
    });
    return claim;
  };

  it('of those who wait is nothing that stays for ever', async () => {
    for (const permits of [1, 2]) {
      const key = `lease/line ${permits}`;
      await take(store, key, { permits });
      if (permits > 1) await take(store, key, { permits });
      await stand(claimOf(key, { permits }));
      expect(await admin.zcard(redisKeys(key).line)).toBe(1);
    }
    expect(await forEver()).toEqual([]);
  });

  it('of those who waited is nothing, whether they had their turn or gave up (rule 10)', async () => {
    const held = await take(store, 'lease/waited');
    const before = [...(await remains()).keys()];
    const [first, second, third] = [3_000, 2_000, 1_000].map((waited) =>
      claimOf(held.key, { waited, ...(waited === 2_000 ? { once: 'tick' } : {}) }),
    );
    for (const claim of [first!, second!, third!]) await stand(claim);
    await store.release(third!, {});
    await store.release(held, {});
    await store.release(second!, {});
    await store.release(first!, {});
    expect([...(await remains()).keys()]).toEqual(before);
    expect(await admin.strlen('lease:{waited}')).toBe(16);
  });

  it('of a record that was evicted is nothing that stays for ever', async () => {
    const key = 'lease/evicted';
    for (const _ of [1, 2]) await take(store, key, { permits: 2 });
    await admin.del(redisKeys(key).lease);
    await stand(claimOf(key, { permits: 2 }));
    expect(await forEver()).toEqual([]);
  });

  it('goes by itself, soon after the retention of its fence', async () => {
    const brief = new RedisLeaseStore(server.url, { fenceRetention: 1_000 });
    await brief.release(await take(brief, 'lease/brief', { ttl: 50 }), {});
    await take(brief, 'lease/brief permits', { ttl: 50, permits: 2 });
    await until(async () => (await admin.dbsize()) === 0);
    await brief.close();
  });
});

describe('A retention of fences that is shorter than what it is kept for', () => {
  const LONG = 600_000;
  let server: RedisServer;
  let admin: Redis;
  let store: RedisLeaseStore;

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
    store = new RedisLeaseStore(server.url, { fenceRetention: 1_000 });
  });
  afterAll(async () => {
    await store.close();
    admin.disconnect();
    await server.stop();
  });

  const lasts = async (key: string): Promise<boolean> => {
    const { lease, permits, holders } = redisKeys(key);
    const ttls = await Promise.all([lease, permits, holders].map((name) => admin.pttl(name)));
    return ttls.every((ttl) => ttl === -2 || ttl > LONG - 10_000) && ttls.some((ttl) => ttl > 0);
  };

  it.each([1, 2])('does not end a kept place, permits: %i (rule 1)', async (permits) => {
    const held = await take(store, `lease/kept ${permits}`, { ttl: 100, permits });
    await store.release(held, { keepFor: LONG });
    expect(await lasts(held.key)).toBe(true);
  });

  it.each([1, 2])(
    'does not end a lease renewed with a shorter ttl, permits: %i (rule 5)',
    async (permits) => {
      const held = await take(store, `lease/renewed ${permits}`, { ttl: LONG, permits });
      await store.renew([{ ...held, ttl: 100 }]);
      expect(await lasts(held.key)).toBe(true);
    },
  );

  it('does not end a permit when another holder has a shorter ttl (rule 1)', async () => {
    const held = await take(store, 'lease/mixed', { ttl: LONG, permits: 2 });
    const brief = await take(store, held.key, { ttl: 100, permits: 2 });
    expect(await lasts(held.key)).toBe(true);
    await store.renew([brief]);
    expect(await lasts(held.key)).toBe(true);
    await store.release(brief, {});
    expect(await lasts(held.key)).toBe(true);
  });
});

describe('The names of a lease in Redis', () => {
  const HOSTILE = [
    'a',
    '{',
    '}',
    '}x',
    '{}',
    '{a}',
    'a}b{c',
    '%7B',
    '%',
    '*',
    '[',
    ' ',
    '🔑',
    '}:once:{',
  ];
  let server: RedisServer;
  let admin: Redis;

  beforeAll(async () => {
    server = await startRedis({ args: ['--cluster-enabled', 'yes'] });
    admin = new Redis(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  it.each(HOSTILE)('share one hash slot: %p (rule 14)', async (key) => {
    const slot = async (name: string): Promise<number> =>
      (await admin.cluster('KEYSLOT', name)) as number;
    const keys = redisKeys(`lease/${key}`);
    const marks = HOSTILE.map((once) => keys.mark(once));
    const names = [keys.lease, keys.line, keys.permits, keys.holders, ...marks];
    const slots = await Promise.all(names.map(slot));
    expect(new Set(slots).size).toBe(1);
  });
});

/** The first field of a record: see lib/stores/redis/lua/parts/record.lua. */
const lastFence = async (admin: Redis, name: string): Promise<number> =>
  Number((await admin.get(name))!.slice(0, 16));

describe('The fences of one key', () => {
  it('strictly grow over 10,000 grants, whatever happens to the data and the server (rule 8)', async () => {
    const server = await startRedis();
    const admin = new Redis(server.url, { retryStrategy: () => 5 });
    admin.on('error', () => undefined);
    const store = new RedisLeaseStore(server.url, { fenceRetention: 1_000 });
    const fences: number[] = [];
    // The first after a trouble is once for one alone, once for one of several: each makes its own fences.
    const grant = async (count: number, shared: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const permits = i % 10 === shared ? 2 : 1;
        const held = await take(store, 'lease/fenced', { ttl: 100, permits });
        fences.push(held.fence);
        await store.release(held, {});
      }
    };
    const restart = async (): Promise<void> => {
      await server.restart();
      await until(() =>
        store.open().then(
          () => true,
          () => false,
        ),
      );
    };
    const troubles: (() => Promise<unknown>)[] = [
      () => admin.flushall(),
      () => admin.flushall(),
      () => admin.script('FLUSH'),
      () => until(async () => (await admin.exists('lease:{fenced}')) === 0),
      restart,
      restart,
    ];
    for (const [i, trouble] of troubles.entries()) {
      await grant(1_600, i % 2);
      await trouble();
    }
    await grant(400, 0);
    const outOfOrder = fences.filter((fence, i) => i > 0 && fence <= fences[i - 1]!);
    expect(outOfOrder).toEqual([]);
    expect(fences).toHaveLength(10_000);
    await store.close();
    admin.disconnect();
    await server.stop();
  });

  it('grow even when the clock of the server was behind what it gave before (rule 8)', async () => {
    const server = await startRedis();
    const admin = new Redis(server.url);
    const store = new RedisLeaseStore(server.url);
    const future = (Date.now() + 3_600_000) * 1_000;
    await admin.set('lease:{future}', future, 'PX', 60_000);
    for (const permits of [1, 2, 1]) {
      const before = await lastFence(admin, 'lease:{future}');
      const held = await take(store, 'lease/future', { permits });
      expect(held.fence).toBe(before + 1);
      await store.release(held, {});
    }
    await store.close();
    admin.disconnect();
    await server.stop();
  });

  it('and the keys they are of can be had by others when the clock was set back (rule 8)', async () => {
    const server = await startRedis();
    const admin = new Redis(server.url);
    const store = new RedisLeaseStore(server.url);
    // Granted an hour from now: as the record looks after the clock went back by that much.
    const future = (Date.now() + 3_600_000) * 1_000;
    const held = await take(store, 'lease/back');
    const record = (await admin.get('lease:{back}'))!;
    await admin.set('lease:{back}', `${future} ${future}${record.slice(33)}`, 'PX', 60_000);
    const next = claimOf(held.key);
    expect(await store.handOver(held, next, () => undefined)).toEqual({
      freed: true,
      answer: { granted: true, fence: future + 1 },
    });
    expect(await store.release(next, {})).toBe(true);
    await take(store, held.key);
    await store.close();
    admin.disconnect();
    await server.stop();
  });

  it('are not spent by refused claims (rule 8)', async () => {
    const server = await startRedis();
    const admin = new Redis(server.url);
    const store = new RedisLeaseStore(server.url);
    const { key, fence } = await take(store, 'lease/unspent');
    for (const permits of [1, 2]) await store.acquire(claimOf(key, { permits }));
    expect(await lastFence(admin, 'lease:{unspent}')).toBe(fence);
    await store.close();
    admin.disconnect();
    await server.stop();
  });
});
