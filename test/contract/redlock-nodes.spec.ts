import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  BAD_DURATION_RANGE,
  NOT_CONNECTED,
  NO_PERMITS,
  REDIS_TOO_OLD,
  REDLOCK_NODE_COUNT,
  REDLOCK_NO_MAJORITY,
  REDLOCK_SAME_NODE,
  REDLOCK_TTL,
} from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { bulk, startFakeRedis } from '../support/fake-redis.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, ask, startNodes, urlsOf } from '../support/redlock-nodes.js';
import { until } from '../support/until.js';

const stores: RedlockLeaseStore[] = [];
const storeOf = (...args: ConstructorParameters<typeof RedlockLeaseStore>): RedlockLeaseStore => {
  const store = new RedlockLeaseStore(...args);
  stores.push(store);
  return store;
};
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));

describe('A Redlock store is made', () => {
  const NOWHERE = 'redis://127.0.0.1:1';

  it.each([[[]], [['redis://a']], [['redis://a', 'redis://b']], [['a', 'b', 'c', 'd']]])(
    'of an odd number of nodes, three or more, not of %j',
    (nodes) => {
      expect(() => new RedlockLeaseStore(nodes)).toThrow(new TypeError(REDLOCK_NODE_COUNT(nodes)));
    },
  );

  it('of an array', () => {
    const url = NOWHERE as unknown as string[];
    expect(() => new RedlockLeaseStore(url)).toThrow(new TypeError(REDLOCK_NODE_COUNT(url)));
  });

  it('of nodes that are not the same address, whatever the database', () => {
    const nodes = ['redis://a', 'redis://:secret@B:6379/1', { host: 'b', db: 2 }];
    const error = new TypeError(REDLOCK_SAME_NODE(1, 2, 'b:6379', 'b:6379'));
    expect(() => new RedlockLeaseStore(nodes)).toThrow(error);
  });

  it('with a maxTtl that its limits follow', () => {
    expect(storeOf(['redis://a', 'redis://b', 'redis://c']).limits.maxTtl).toBe(60_000);
    const nodes = ['redis://a', 'redis://b', 'redis://c'];
    expect(storeOf(nodes, { maxTtl: '5m' }).limits.maxTtl).toBe(300_000);
    const error = BAD_DURATION_RANGE('maxTtl', 10, 300, 86_400_000);
    expect(() => new RedlockLeaseStore(nodes, { maxTtl: 10 })).toThrow(new RangeError(error));
  });

  it('without connecting', async () => {
    const store = storeOf([NOWHERE, 'redis://127.0.0.1:2', 'redis://127.0.0.1:3']);
    await expect(store.open()).rejects.toThrow(REDLOCK_NO_MAJORITY(3, 3));
  });

  it('but not with nodes that are too old: they are named, and do not vote', async () => {
    const info = bulk('redis_version:6.0.16\r\nloading:0\r\n');
    const looks = (run: string): string =>
      `*6\r\n:${Date.now()}\r\n${bulk(run)}:1\r\n:0\r\n${bulk('0')}:60000\r\n`;
    const nodes = await Promise.all(
      ['a', 'b', 'c'].map((run) =>
        startFakeRedis(([name]) => ({ INFO: info, EVALSHA: looks(run) })[name]),
      ),
    );
    const error: unknown = await storeOf(urlsOf(nodes))
      .open()
      .catch((thrown: unknown) => thrown);
    await Promise.all(nodes.map((node) => node.close()));
    expect(error).toMatchObject({
      message: REDLOCK_NO_MAJORITY(3, 3),
      cause: { message: REDIS_TOO_OLD('6.0.16') },
    });
  });
});

describe('Of five Redlock nodes', () => {
  let servers: RedisServer[];
  beforeAll(async () => {
    servers = await startNodes(5);
  });
  beforeEach(() => admitAll(servers));
  afterEach(async () => {
    for (const server of servers) await server.restart();
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  const kill = (count: number): Promise<void[]> =>
    Promise.all(servers.slice(0, count).map((server) => server.kill()));

  it('two may be down: claims, renewals, releases and marks work', async () => {
    await kill(2);
    const store = storeOf(urlsOf(servers));
    await store.open();
    const held = await take(store, 'lease/a', { once: 'tick' });
    expect(await store.renew([held])).toEqual(['renewed']);
    const other = storeOf(urlsOf(servers));
    expect(await other.acquire(claimOf('lease/a'))).toMatchObject({ reason: 'held' });
    expect((await other.inspect('lease/a'))?.holders).toMatchObject([{ fence: held.fence }]);
    const done = { once: 'tick', remember: 60_000 };
    expect(await store.release(held, { done })).toBe(true);
    expect(await other.acquire(claimOf('lease/a', { once: 'tick' }))).toMatchObject({
      reason: 'done',
    });
    expect((await take(other, 'lease/a')).fence).toBeGreaterThan(held.fence);
  });

  it('two may go down under a lease', async () => {
    const store = storeOf(urlsOf(servers));
    const held = await take(store, 'lease/a');
    for (const server of servers) {
      await until(async () => (await ask(server, (client) => client.exists('lease:{a}'))) === 1);
    }
    await kill(2);
    expect(await store.renew([held])).toEqual(['renewed']);
    expect(await store.acquire(claimOf('lease/a'))).toMatchObject({ reason: 'held' });
    expect(await store.release(held, {})).toBe(true);
  });

  it('one that lost a lease is given it back while another is frozen', async () => {
    const store = storeOf(urlsOf(servers));
    await store.open();
    // Half of it is over before the frozen one is known to be dead.
    const held = await take(store, 'lease/a', { ttl: 3_000 });
    const [frozen, forgetful] = servers as [RedisServer, RedisServer];
    await frozen.pause();
    await ask(forgetful, (client) => client.del('lease:{a}'));
    expect(await store.renew([held])).toEqual(['renewed']);
    const tokenThere = (): Promise<string | null> =>
      ask(forgetful, (client) => client.hget('lease:{a}', 'token'));
    await until(async () => (await tokenThere()) === held.token);
    frozen.resume();
  });

  it('with three down nothing is granted, and nobody is said to hold it (rule 9)', async () => {
    const store = storeOf(urlsOf(servers));
    const held = await take(store, 'lease/a');
    await kill(3);
    const refusal = await store.acquire(claimOf('lease/b', { patience: 300 }));
    expect(refusal).toMatchObject({ granted: false, reason: 'unavailable' });
    expect((refusal as { cause: Error }).cause.message).toBe(REDLOCK_NO_MAJORITY(3, 5));
    expect(await store.renew([{ ...held, ttl: 800 }])).toEqual(['unknown']);
    await expect(store.release(held, {})).rejects.toThrow();
    await expect(store.inspect('lease/a')).rejects.toThrow(REDLOCK_NO_MAJORITY(3, 5));
    // Given back where it was granted.
    const left = (): Promise<number> => ask(servers[4]!, (client) => client.exists('lease:{b}'));
    await until(async () => (await left()) === 0);
  });

  it('with three down a lease ends in time, and its holder is told (rule 4)', async () => {
    const store = storeOf(urlsOf(servers));
    await store.open();
    const engine = new LeaseEngine({ store, namespace: 'x', instance: 'i', ttl: 900, wait: 0 });
    const lease = (await engine.tryAcquire('a'))!;
    await kill(3);
    await until(() => lease.signal.aborted);
    expect(lease.isHeld).toBe(false);
    await expect(engine.tryAcquire('b')).rejects.toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
    await engine.close(0, 0);
  });

  it('all may be down at the start: claims are refused until they are back', async () => {
    await kill(5);
    const store = storeOf(urlsOf(servers), { quarantine: false });
    await expect(store.open()).rejects.toThrow(REDLOCK_NO_MAJORITY(5, 5));
    const claim = claimOf('lease/a', { patience: 200 });
    expect(await store.acquire(claim)).toMatchObject({ granted: false, reason: 'unavailable' });
    for (const server of servers) await server.start();
    await until(async () => (await store.acquire(claim)).granted);
  });

  it('none tells a password or a token (rule 15)', async () => {
    const urls = urlsOf(servers).map((url) => url.replace('//', '//:swordfish@'));
    const store = storeOf(urls);
    const claim = claimOf('lease/a', { patience: 300 });
    const errors = [
      await store.open().catch((error: unknown) => error),
      await store.acquire(claim).catch((error: unknown) => error),
      await store.release(claim, {}).catch((error: unknown) => error),
      await store.inspect('lease/a').catch((error: unknown) => error),
    ];
    await kill(5);
    errors.push(await store.acquire(claim).catch((error: unknown) => error));
    const shown = inspect(errors, { depth: 10, showHidden: true });
    expect(shown).not.toContain('swordfish');
    expect(shown).not.toContain(claim.token);
  });

  it('two that are the same server by another name are an error when that is seen', async () => {
    const [a, b, c] = servers as [RedisServer, RedisServer, RedisServer];
    const store = storeOf([a.url, `redis://localhost:${a.port}`, b.url]);
    const names = [`127.0.0.1:${a.port}`, `localhost:${a.port}`] as const;
    const error = new TypeError(REDLOCK_SAME_NODE(0, 1, ...names));
    await expect(store.open()).rejects.toThrow(error);
    await expect(store.acquire(claimOf('lease/a'))).rejects.toThrow(error);
    await until(async () => (await ask(b, (client) => client.exists('lease:{a}'))) === 0);
    const sound = storeOf(urlsOf([a, b, c]));
    await take(sound, 'lease/a');
  });

  it('have no permits, and no ttl above maxTtl', async () => {
    const store = storeOf(urlsOf(servers), { maxTtl: '20s' });
    const shared = claimOf('lease/a', { permits: 2 });
    await expect(store.acquire(shared)).rejects.toThrow(new RangeError(NO_PERMITS('Redlock')));
    const long = claimOf('lease/a', { ttl: 30_000 });
    const error = new RangeError(REDLOCK_TTL(30_000, 20_000));
    await expect(store.acquire(long)).rejects.toThrow(error);
    await expect(store.renew([long])).rejects.toThrow(error);
    const engine = new LeaseEngine({ store, namespace: 'x', instance: 'i', ttl: 900, wait: 0 });
    await expect(engine.tryAcquire('a', { permits: 2 })).rejects.toThrow(NO_PERMITS('Redlock'));
    await engine.close(0, 0);
  });

  it('are asked nothing after the store is closed', async () => {
    const store = storeOf(urlsOf(servers));
    const held = await take(store, 'lease/a');
    await store.close();
    await expect(store.acquire(claimOf('lease/b'))).rejects.toThrow(NOT_CONNECTED());
    await expect(store.renew([held])).rejects.toThrow(NOT_CONNECTED());
    await expect(store.release(held, {})).rejects.toThrow(NOT_CONNECTED());
    const list = await ask(servers[0]!, (client) => client.client('LIST'));
    expect(list).not.toContain('name=nestjs-lease');
  });
});
