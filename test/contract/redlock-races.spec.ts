import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, ask, startNodes, urlsOf } from '../support/redlock-nodes.js';
import { until } from '../support/until.js';

let servers: RedisServer[];
const stores: RedlockLeaseStore[] = [];
const proxies: FaultProxy[] = [];

beforeEach(async () => {
  servers = await startNodes(5);
  await admitAll(servers);
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

async function storeOf(nodes: readonly { readonly url: string }[]): Promise<RedlockLeaseStore> {
  const store = new RedlockLeaseStore(urlsOf(nodes));
  stores.push(store);
  await store.open();
  return store;
}

/** A store whose way to each of the nodes can be troubled on its own. */
async function storeThroughProxies(): Promise<{ store: RedlockLeaseStore; ways: FaultProxy[] }> {
  const ways = await Promise.all(servers.map(({ port }) => startFaultProxy(port)));
  proxies.push(...ways);
  return { store: await storeOf(ways), ways };
}

describe('Claims of several processes that meet', () => {
  it('200 times have one winner or none, and fences in order', async () => {
    const racers = [await storeOf(servers), await storeOf(servers), await storeOf(servers)];
    let last = 0;
    let wins = 0;
    for (let i = 0; i < 200; i++) {
      const tries = racers.map(async (store) => {
        const claim = claimOf('lease/a');
        return { store, claim, answer: await store.acquire(claim) };
      });
      const answers = await Promise.all(tries);
      const winners = answers.filter(({ answer }) => answer.granted);
      expect(winners.length).toBeLessThanOrEqual(1);
      for (const { answer } of answers) if (!answer.granted) expect(answer.reason).toBe('held');
      for (const { store, claim, answer } of winners) {
        const { fence } = answer as { fence: number };
        expect(fence).toBeGreaterThan(last);
        last = fence;
        wins++;
        expect(await store.release(claim, {})).toBe(true);
      }
    }
    expect(wins).toBeGreaterThan(100);
  }, 60_000);

  it('who wait for it have it one after the other', async () => {
    const engines = await Promise.all(
      [1, 2, 3].map(async (n) => {
        const store = await storeOf(servers);
        return new LeaseEngine({ store, namespace: 'x', instance: `${n}`, ttl: 3_000, wait: 0 });
      }),
    );
    let inside = 0;
    const fences: number[] = [];
    await Promise.all(
      engines.flatMap((engine) =>
        Array.from({ length: 5 }, () =>
          engine.run(
            'shared',
            async (lease) => {
              expect(++inside).toBe(1);
              fences.push(lease.fence);
              await engine.inspect('shared');
              inside--;
            },
            { wait: 20_000 },
          ),
        ),
      ),
    );
    expect(fences).toHaveLength(15);
    expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b));
    await Promise.all(engines.map((engine) => engine.close(0, 0)));
  }, 40_000);
});

describe('Two claimants that see different majorities', () => {
  it('have nodes in common: one of them is refused', async () => {
    const [mine, theirs] = [await storeThroughProxies(), await storeThroughProxies()];
    // Mine reaches 1 to 3, theirs 3 to 5.
    for (const way of mine.ways.slice(3)) way.cut();
    for (const way of theirs.ways.slice(0, 2)) way.cut();
    let last = 0;
    for (let i = 0; i < 10; i++) {
      const [first, second] = i % 2 === 0 ? [mine, theirs] : [theirs, mine];
      const held = await take(first.store, 'lease/a', { patience: 1_000 });
      expect(held.fence).toBeGreaterThan(last);
      last = held.fence;
      const other = claimOf('lease/a', { patience: 300 });
      expect(await second.store.acquire(other)).toMatchObject({ granted: false });
      expect(await first.store.renew([held])).toEqual(['renewed']);
      expect(await first.store.release(held, {})).toBe(true);
      for (const server of servers) {
        await until(async () => (await ask(server, (c) => c.exists('lease:{a}'))) === 0);
      }
    }
  });

  it('see what is done: a mark of one majority is seen by the other', async () => {
    const [mine, theirs] = [await storeThroughProxies(), await storeThroughProxies()];
    for (const way of mine.ways.slice(3)) way.cut();
    const held = await take(mine.store, 'lease/a', { once: 'tick', patience: 1_000 });
    await mine.store.release(held, { done: { once: 'tick', remember: 60_000 } });
    for (const way of theirs.ways.slice(0, 2)) way.cut();
    const again = claimOf('lease/a', { once: 'tick', patience: 1_000 });
    expect(await theirs.store.acquire(again)).toMatchObject({ granted: false, reason: 'done' });
  });

  it('of which one node hears requests and cannot answer: a grant it gave is given back', async () => {
    const { store, ways } = await storeThroughProxies();
    const warm = await take(store, 'lease/a');
    await store.release(warm, {});
    for (const way of ways.slice(0, 3)) way.swallowReplies();
    const claim = claimOf('lease/a', { patience: 200, ttl: 60_000 });
    expect(await store.acquire(claim)).toMatchObject({ granted: false, reason: 'unavailable' });
    for (const way of ways) way.heal();
    for (const server of servers) {
      await until(async () => (await ask(server, (c) => c.exists('lease:{a}'))) === 0, {
        within: 15_000,
      });
    }
    expect((await take(await storeOf(servers), 'lease/a')).fence).toBeGreaterThan(warm.fence);
  });
});
