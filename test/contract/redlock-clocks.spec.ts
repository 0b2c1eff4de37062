import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import type { Claim, Grant } from '../../lib/stores/lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import { admitAll, ask, urlsOf } from '../support/redlock-nodes.js';
import { startSteppedRedis, type SteppedRedis } from '../support/stepped-redis.js';
import { until } from '../support/until.js';

const NODES = [0, 1, 2];
/** Of three, each two. */
const MAJORITIES = [
  [0, 1],
  [1, 2],
  [0, 2],
] as const;
const TTL = 20_000;

let nodes: SteppedRedis[];
const stores: RedlockLeaseStore[] = [];
const proxies: FaultProxy[] = [];

beforeEach(async () => {
  nodes = await Promise.all(NODES.map(() => startSteppedRedis()));
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  await Promise.all(nodes.map((node) => node.stop()));
});

const setClocks = (...seconds: readonly number[]): Promise<unknown> =>
  Promise.all(seconds.map((one, i) => nodes[i]!.setClock(one)));

const admitted = (): Promise<void> => admitAll(nodes.map(({ server }) => server));

async function opened(urls: readonly string[]): Promise<RedlockLeaseStore> {
  const store = new RedlockLeaseStore(urls);
  stores.push(store);
  await store.open();
  return store;
}

const storeOnAll = (): Promise<RedlockLeaseStore> => opened(urlsOf(nodes.map((n) => n.server)));

/** A store for each majority, which reaches no other node. */
async function storesOnMajorities(): Promise<RedlockLeaseStore[]> {
  const made: RedlockLeaseStore[] = [];
  for (const majority of MAJORITIES) {
    const ways = await Promise.all(nodes.map(({ server }) => startFaultProxy(server.port)));
    proxies.push(...ways);
    made.push(await opened(urlsOf(ways)));
    ways.forEach((way, i) => {
      if (!(majority as readonly number[]).includes(i)) way.cut();
    });
  }
  return made;
}

const isFree = (name: string): Promise<boolean[]> =>
  Promise.all(
    nodes.map(async ({ server }) => (await ask(server, (c) => c.exists(`lease:{${name}}`))) === 0),
  );

/** Every majority after every other takes the key, and meanwhile no other may; fences grow. */
async function takeInTurn(holders: readonly RedlockLeaseStore[], last: number): Promise<number> {
  for (const [i, holder] of holders.entries()) {
    const held = await take(holder, 'lease/a', { ttl: TTL, patience: 2_000 });
    expect(held.fence).toBeGreaterThan(last);
    last = held.fence;
    for (const other of holders.filter((_, n) => n !== i)) {
      const claim = claimOf('lease/a', { ttl: TTL, patience: 500 });
      expect(await other.acquire(claim)).toMatchObject({ granted: false });
    }
    expect(await holder.renew([held])).toEqual(['renewed']);
    expect(await holder.release(held, {})).toBe(true);
    await until(async () => (await isFree('a')).every(Boolean));
  }
  return last;
}

describe('Of three real nodes, whose clocks are set', () => {
  it('one may be behind and one ahead: one holder, and fences grow over any majorities (rule 8)', async () => {
    await setClocks(-30, 0, 30);
    await admitted();
    const holders = await storesOnMajorities();
    let last = await takeInTurn(holders, 0);
    // The fence is of the clock that is ahead, and each of the others is told.
    last = await takeInTurn(holders.toReversed(), last);
    expect(last).toBeGreaterThan((Date.now() + 20_000) * 1_000);
    await setClocks(30, -30, 0);
    last = await takeInTurn(holders, last);
    await setClocks(0, 0, 0);
    await takeInTurn(holders, last);
  });

  it.each([
    ['back', -30],
    ['ahead', 30],
  ])('one may be stepped %s under a lease: it is held on, by nobody else', async (_, seconds) => {
    await admitted();
    const [mine, theirs] = [await storeOnAll(), await storeOnAll()];
    const held = await take(mine, 'lease/a', { ttl: TTL });
    for (const node of nodes) {
      await node.setClock(seconds);
      const other = claimOf('lease/a', { ttl: TTL });
      expect(await theirs.acquire(other)).toMatchObject({ granted: false, reason: 'held' });
      // Where it ran out too soon it is given back, so that the next may be stepped.
      await until(async () => {
        expect(await mine.renew([held])).toEqual(['renewed']);
        const [token] = await ask(node.server, (c) => c.hmget('lease:{a}', 'token'));
        return token === held.token;
      });
      expect(await theirs.acquire(other)).toMatchObject({ granted: false, reason: 'held' });
    }
    expect(await mine.release(held, {})).toBe(true);
    expect((await take(theirs, 'lease/a')).fence).toBeGreaterThan(held.fence);
  });

  it('a claim is granted by a node that was stepped ahead, whose deadline was in its old time', async () => {
    await admitted();
    const store = await storeOnAll();
    await store.release(await take(store, 'lease/other'), {});
    await setClocks(30, 30, 30);
    await take(store, 'lease/a');
  });

  it('a majority stepped ahead by more than the ttl is the limit: two hold, with fences in order', async () => {
    await admitted();
    const [mine, theirs] = [await storeOnAll(), await storeOnAll()];
    const first: Claim & Grant = await take(mine, 'lease/a', { ttl: TTL });
    await setClocks(30, 30, 0);
    const second = await take(theirs, 'lease/a', { ttl: TTL });
    expect(second.fence).toBeGreaterThan(first.fence);
    // The first trusts itself until it asks.
    expect(await mine.renew([first])).toEqual(['gone']);
    expect(await theirs.renew([second])).toEqual(['renewed']);
  });
});
