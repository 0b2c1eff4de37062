import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BAD_REPLY, REDLOCK_NOT_READMITTED, REDLOCK_SAME_NODE } from '../../lib/lease.messages.js';
import { readmit } from '../../lib/stores/redlock/readmission.js';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { RedlockNode } from '../../lib/stores/redlock/redlock-node.js';
import { claimOf, take } from '../support/claims.js';
import { bulk } from '../support/fake-redis.js';
import { reply, startLyingNode, type Lie, type LyingNode } from '../support/lying-node.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, ask, startNodes, urlsOf } from '../support/redlock-nodes.js';
import { until } from '../support/until.js';

const NOW = 1_700_000_000_000;
const YEAR = 365 * 86_400_000;

/** Answers from which nothing follows. */
const NONSENSE: readonly [what: string, answer: string][] = [
  ['null', '$-1\r\n'],
  ['an empty array', '*0\r\n'],
  ['a text', bulk('1')],
  ['the time alone', reply(NOW)],
  ['half of it', reply(NOW, 1)],
  ['more than was asked for', reply(NOW, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)],
  ['a verdict that is not known', reply(NOW, 42, 0, '')],
  ['numbers beyond all bounds', '*3\r\n:99999999999999999999\r\n:1\r\n:1\r\n'],
  ['numbers below 0', reply(-1, -1, -1, '-1')],
  ['texts for numbers', reply(`${NOW}`, '1', '0', '0')],
  ['numbers for texts', reply(NOW, 1, 7, 0)],
  ['nested arrays', '*3\r\n*1\r\n:1\r\n*1\r\n:2\r\n*1\r\n:3\r\n'],
  ['an error', '-ERR no\r\n'],
];

/** After these whatever comes next answers nothing. ioredis does not live through a null then, so they come last. */
const NO_PROTOCOL: readonly [what: string, answer: string][] = [
  ['bytes of no protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ['half an answer', `*3\r\n:${NOW}\r\n:1`],
];

/** Fences that no node proposes. */
const ABSURD = [
  '1e300',
  '-1',
  'NaN',
  'nan',
  'inf',
  '0',
  '',
  '1.5',
  '0x7fffffff',
  ' 1',
  '9007199254740993',
  // The last one: every node that took it could never grant again.
  '9007199254740991',
  // Of the year 2223.
  '8000000000000000',
];

let servers: RedisServer[];
let liars: LyingNode[];
const stores: RedlockLeaseStore[] = [];

beforeAll(async () => {
  servers = await startNodes(3);
});
beforeEach(async () => {
  await Promise.all(servers.map((server) => ask(server, (client) => client.flushall())));
  await admitAll(servers);
});
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));
afterAll(() => Promise.all(servers.map((server) => server.stop())));

const lying = (lie: Lie): void => {
  for (const liar of liars) liar.lie = lie;
};

/** As many honest nodes as are a majority with the liars counted. */
const honest = (count: number): RedisServer[] => servers.slice(0, (count + 1) / 2);

function storeOf(count: 3 | 5): RedlockLeaseStore {
  const liarsHere = liars.slice(0, (count - 1) / 2);
  const store = new RedlockLeaseStore(urlsOf([...honest(count), ...liarsHere]));
  stores.push(store);
  return store;
}

const knows = (server: RedisServer, field: string): Promise<number> =>
  ask(server, async (client) => Number(await client.hget('nestjs-lease:redlock', field)));

const allKeys = async (store: RedlockLeaseStore): Promise<string[]> => {
  const keys: string[] = [];
  for await (const { key } of store.list({ prefix: 'lease/' })) keys.push(key);
  return keys;
};

/** All that is asked of a store, with honest nodes enough. */
async function useAll(store: RedlockLeaseStore): Promise<void> {
  const held = await take(store, 'lease/a', { once: 'tick' });
  expect(held.fence).toBeLessThan((Date.now() + YEAR) * 1_000);
  expect(await store.renew([held])).toEqual(['renewed']);
  expect(await store.acquire(claimOf('lease/a'))).toMatchObject({ reason: 'held' });
  const record = (await store.inspect('lease/a'))!;
  expect(record.holders).toMatchObject([{ fence: held.fence }]);
  expect(Number.isFinite(record.holders[0]!.since.getTime())).toBe(true);
  expect(await allKeys(store)).toEqual(['lease/a']);
  expect(await store.release(held, {})).toBe(true);
  const next = await take(store, 'lease/a');
  expect(next.fence).toBeGreaterThan(held.fence);
  expect(await store.release(next, {})).toBe(true);
  expect(await store.inspect('lease/a')).toBeNull();
}

describe.each([3, 5] as const)('With a minority of %i nodes that lies', (count) => {
  /** One for all of them: closing it waits for what cannot be given back to a liar. */
  let store: RedlockLeaseStore;
  beforeAll(async () => {
    liars = await Promise.all([startLyingNode(), startLyingNode()]);
    store = storeOf(count);
    stores.pop();
  });
  beforeEach(() => lying(() => undefined));
  afterAll(async () => {
    await store.close();
    await Promise.all(liars.map((liar) => liar.close()));
  });

  it.each(NONSENSE)('all goes on: it answers everything with %s', async (_, answer) => {
    lying(() => answer);
    await useAll(store);
  });

  it.each(NONSENSE)('all goes on: it votes, and answers the rest with %s', async (_, answer) => {
    lying((script) => (script === 'look' ? undefined : answer));
    await useAll(store);
  });

  it.each(NO_PROTOCOL)('all goes on: it sends %s', async (_, answer) => {
    lying(() => answer);
    await useAll(store);
    lying((script) => (script === 'look' ? undefined : answer));
    await useAll(store);
  });

  it('nothing is granted, renewed or released that honest nodes refuse', async () => {
    const [mine, theirs] = [store, storeOf(count)];
    const held = await take(mine, 'lease/a');
    // Where its answer came first, the verdict may not have waited for all of them.
    for (const server of honest(count)) {
      await until(() => ask(server, (c) => c.exists('lease:{a}')));
    }
    for (let i = 0; i < 20; i++) {
      expect(await theirs.acquire(claimOf('lease/a'))).toMatchObject({ reason: 'held' });
    }
    await Promise.all(honest(count).map((server) => ask(server, (c) => c.del('lease:{a}'))));
    expect(await mine.renew([held])).toEqual(['gone']);
    expect(await mine.release(held, {})).toBe(false);
    expect(await mine.inspect('lease/a')).toBeNull();
  });

  it.each(ABSURD)('a proposal of %j counts as no answer (rule 8)', async (fence) => {
    lying((script) => (script === 'claim' ? reply(Date.now(), 1, fence, '1') : undefined));
    await useAll(store);
    const [away, ...here] = honest(count) as [RedisServer, ...RedisServer[]];
    await away.pause();
    const claim = claimOf('lease/b', { patience: 150 });
    expect(await store.acquire(claim)).toMatchObject({ granted: false, reason: 'unavailable' });
    away.resume();
    for (const server of here) expect(await knows(server, 'high')).toBeLessThan(Date.now() * 1_100);
  });

  it.each(ABSURD)('a lease is given back to nobody under the fence %j', async (fence) => {
    lying((script) => (script === 'claim' ? reply(Date.now(), 0, 1, 'x') : undefined));
    const held = await take(store, 'lease/a');
    const [server] = honest(count) as [RedisServer];
    lying((script) =>
      script === 'inspect'
        ? reply(Date.now(), 1, 0, held.token, fence, '1', 'i', '1', 1)
        : undefined,
    );
    await ask(server, (client) => client.del('lease:{a}'));
    await until(async () => {
      expect(await store.renew([held])).toEqual(['renewed']);
      return (await ask(server, (c) => c.hget('lease:{a}', 'fence'))) === `${held.fence}`;
    });
    expect((await take(store, 'lease/b')).fence).toBeLessThan((Date.now() + YEAR) * 1_000);
  });

  it('no time that it tells is told on', async () => {
    const held = await take(store, 'lease/a');
    for (const since of ['NaN', '1e300', '', '-1', '9999999999999999']) {
      lying((script) =>
        script === 'inspect'
          ? reply(Date.now(), 1, 0, held.token, `${held.fence}`, '1', 'i', since, 1)
          : undefined,
      );
      const { holders } = (await store.inspect('lease/a'))!;
      expect(Math.abs(holders[0]!.since.getTime() - Date.now())).toBeLessThan(YEAR);
    }
  });

  it('a mark that nobody asked for is no answer', async () => {
    lying((script) => (script === 'claim' ? reply(Date.now(), 2, 0, '') : undefined));
    for (let i = 0; i < 10; i++) await store.release(await take(store, 'lease/a'), {});
  });
});

describe('A node that lies', () => {
  beforeEach(async () => {
    liars = await Promise.all([startLyingNode(), startLyingNode()]);
  });
  afterEach(() => Promise.all(liars.map((liar) => liar.close())));

  /** Long enough for hundreds of requests to be sent in a circle. */
  const forAWhile = async (): Promise<void> => {
    const since = performance.now();
    await until(() => performance.now() - since > 500);
  };

  it.each([
    ['years', Number.MAX_SAFE_INTEGER],
    ['a month', 30 * 86_400_000],
    ['no time', 0],
  ])('about its quarantine, of %s, is not asked in a circle', async (_, wait) => {
    lying((script) => {
      if (script === 'claim') return reply(Date.now(), 5, wait, '');
      if (script === 'look') return reply(Date.now(), 'run', 0, wait, '0', 60_000);
      return script === 'admit' ? reply(Date.now(), 0, wait) : undefined;
    });
    await useAll(storeOf(3));
    const before = liars[0]!.count('look');
    await forAWhile();
    expect(liars[0]!.count('look') - before).toBeLessThan(20);
  });

  it('about being late is not asked in a circle', async () => {
    lying((script) => (script === 'claim' ? reply(Date.now(), 3, 0, '') : undefined));
    await take(storeOf(3), 'lease/a', { patience: 10_000, ttl: 30_000 });
    await forAWhile();
    expect(liars[0]!.count('claim')).toBeLessThan(10);
  });

  it.each([
    ...ABSURD.filter((high) => high !== '0').map((high) => ['high', high] as const),
    ...[Number.MAX_SAFE_INTEGER, 86_400_001].map((longest) => ['longest', longest] as const),
  ])('about its %s, %j, teaches nothing to one that lost its data', async (field, value) => {
    const [forgot, other] = servers as [RedisServer, RedisServer];
    const [liar] = liars as [LyingNode];
    const nodes = [forgot, other, liar].map(({ url }) => new RedlockNode(url, 60_000, () => {}));
    const lie = { high: '1', longest: 60_000, [field]: value };
    liar.lie = (script) =>
      script === 'look' ? reply(Date.now(), 'run', 1, 0, lie.high, lie.longest) : undefined;
    await ask(forgot, (client) => client.del('nestjs-lease:redlock'));
    const [node] = nodes as [RedlockNode];
    await node.look();
    await ask(forgot, (client) => client.hset('nestjs-lease:redlock', 'since', 1));
    await expect(nodes[2]!.look()).rejects.toThrow(BAD_REPLY('look'));
    await expect(readmit(node, nodes)).rejects.toThrow(REDLOCK_NOT_READMITTED(node.name, 1, 2));
    expect(await knows(forgot, 'high')).toBe(0);
    expect(await knows(forgot, 'longest')).toBe(60_000);
    await Promise.all(nodes.map((one) => one.close()));
  });

  it('that scans for ever does not keep a list from ending', async () => {
    const store = storeOf(3);
    await take(store, 'lease/a');
    liars[0]!.scan = () => `*2\r\n${bulk('17')}*1\r\n${bulk('lease:{liar}')}`;
    expect(await allKeys(store)).toEqual(['lease/a']);
    // Nobody goes on with it either.
    const scans = (): number => liars[0]!.commands.filter(([name]) => name === 'SCAN').length;
    const before = scans();
    await forAWhile();
    expect(scans() - before).toBeLessThan(3);
  });
});

describe('The limit of what a node that lies can do', () => {
  const NOWHERE = 'redis://127.0.0.1:1';
  let liar: LyingNode;
  beforeEach(async () => {
    liar = await startLyingNode();
  });
  afterEach(() => liar.close());

  /** Of three nodes, one honest one and the liar are in reach. */
  const storeWith = ({ url }: RedisServer): RedlockLeaseStore => {
    const store = new RedlockLeaseStore([url, NOWHERE, liar.url]);
    stores.push(store);
    return store;
  };

  it('two get a key from it and honest nodes that are divided', async () => {
    const [mine, theirs] = servers.slice(1).map(storeWith) as RedlockLeaseStore[];
    const held = await take(mine!, 'lease/a');
    const too = await take(theirs!, 'lease/a');
    expect(await mine!.renew([held])).toEqual(['renewed']);
    expect(await theirs!.renew([too])).toEqual(['renewed']);
  });

  it('a fence does not go back to where it says that the key was held before (rule 8)', async () => {
    const store = storeWith(servers[0]!);
    const before = await take(store, 'lease/a');
    await store.release(before, {});
    liar.lie = (script) => (script === 'claim' ? reply(Date.now(), 1, '7', '1') : undefined);
    expect((await take(store, 'lease/a')).fence).toBeGreaterThan(before.fence);
  });

  it('fences go on from one that is up to a century ahead', async () => {
    const store = storeWith(servers[0]!);
    const ahead = (Date.now() + 90 * YEAR) * 1_000;
    liar.lie = (script) => (script === 'claim' ? reply(Date.now(), 1, `${ahead}`, '0') : undefined);
    const held = await take(store, 'lease/a');
    expect(held.fence).toBe(ahead);
    await store.release(held, {});
    liar.lie = () => undefined;
    expect((await take(store, 'lease/a')).fence).toBe(ahead + 1);
  });

  it('work counts as done when it says so', async () => {
    liar.lie = (script) => (script === 'claim' ? reply(Date.now(), 2, 0, '') : undefined);
    const claim = claimOf('lease/a', { once: 'tick', patience: 300 });
    expect(await storeWith(servers[0]!).acquire(claim)).toMatchObject({ reason: 'done' });
  });

  it('all claims fail when it says that it is another node, and both are named', async () => {
    const [server] = servers as [RedisServer];
    const run = await ask(server, (client) => client.hget('nestjs-lease:redlock', 'run'));
    liar.lie = (script) =>
      script === 'look' ? reply(Date.now(), run!, 1, 0, '0', 60_000) : undefined;
    const names = [server.url, liar.url].map((url) => url.replace('redis://', ''));
    const error = new TypeError(REDLOCK_SAME_NODE(0, 2, names[0]!, names[1]!));
    await expect(storeWith(server).acquire(claimOf('lease/a'))).rejects.toThrow(error);
  });
});
