import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import type { RedisOptions } from 'ioredis';
import { claimOf, take } from '../support/claims.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, ask, startNodes, urlsOf } from '../support/redlock-nodes.js';
import { until } from '../support/until.js';

let servers: RedisServer[];
let proxies: FaultProxy[];
const stores: RedlockLeaseStore[] = [];

beforeEach(async () => {
  servers = await startNodes(3);
  await admitAll(servers);
  proxies = await Promise.all(servers.map(({ port }) => startFaultProxy(port)));
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

/** Connected to all nodes, with nothing left to be learnt of them. */
async function storeOf(
  nodes: readonly { readonly url: string }[],
  settings?: RedisOptions,
): Promise<RedlockLeaseStore> {
  const store = new RedlockLeaseStore(
    urlsOf(nodes).map((url) => (settings ? { port: Number(new URL(url).port), ...settings } : url)),
  );
  stores.push(store);
  await store.open();
  for (const key of ['lease/other', 'lease/other']) {
    const held = await take(store, key);
    await store.renew([held]);
    await store.release(held, {});
  }
  return store;
}

const isLeft = (server: RedisServer, name: string): Promise<number> =>
  ask(server, (client) => client.exists(`lease:{${name}}`));

describe('A node that is frozen', () => {
  it('costs nobody the time to find out', async () => {
    const store = await storeOf(servers);
    await servers[2]!.pause();
    // Long enough that a test which waited for it would fail.
    const patience = 60_000;
    const held = await take(store, 'lease/a', { patience, ttl: 60_000 });
    expect(await store.acquire(claimOf('lease/a', { patience }))).toMatchObject({ reason: 'held' });
    expect(await store.renew([held])).toEqual(['renewed']);
    expect((await store.inspect('lease/a'))?.holders).toHaveLength(1);
    expect(await store.release(held, {})).toBe(true);
    servers[2]!.resume();
  });

  it('grants nothing late when it goes on (rule 2)', async () => {
    const store = await storeOf(servers);
    await servers[2]!.pause();
    const claim = claimOf('lease/a', { patience: 200 });
    const since = performance.now();
    const held = await take(store, claim.key, claim);
    await until(() => performance.now() - since > claim.patience);
    servers[2]!.resume();
    // What was sent to it has been answered by now: the same connection.
    await until(async () => (await store.inspect('lease/nothing')) === null);
    expect(await isLeft(servers[2]!, 'a')).toBe(0);
    expect(await store.renew([held])).toEqual(['renewed']);
  });

  it('gives back, behind the claim, what it grants in time to who was refused', async () => {
    const [holder, other] = [await storeOf(servers), await storeOf(servers)];
    // The holder has the key on the first two only.
    await servers[2]!.pause();
    const held = await take(holder, 'lease/a', { patience: 100 });
    const refused = claimOf('lease/a', { patience: 60_000, ttl: 60_000 });
    expect(await other.acquire(refused)).toMatchObject({ granted: false, reason: 'held' });
    servers[2]!.resume();
    // Freed there, and a renewal has given it to who has it on the others.
    const tokenThere = (): Promise<string | null> =>
      ask(servers[2]!, (client) => client.hget('lease:{a}', 'token'));
    await until(async () => {
      expect(await holder.renew([held])).toEqual(['renewed']);
      return (await tokenThere()) === held.token;
    });
  });

  it('in turn with the others never gives a key to two', async () => {
    const racers = [await storeOf(servers), await storeOf(servers)];
    let last = 0;
    for (let i = 0; i < 12; i++) {
      const frozen = servers[i % 3]!;
      await frozen.pause();
      const answers = await Promise.all(
        racers.map(async (store) => {
          const claim = claimOf('lease/a', { patience: 400, ttl: 30_000 });
          return { store, claim, answer: await store.acquire(claim) };
        }),
      );
      frozen.resume();
      const winners = answers.filter(({ answer }) => answer.granted);
      expect(winners.length).toBeLessThanOrEqual(1);
      for (const { store, claim, answer } of winners) {
        const { fence } = answer as { fence: number };
        expect(fence).toBeGreaterThan(last);
        last = fence;
        expect(await store.renew([claim])).toEqual(['renewed']);
        expect(await store.release(claim, {})).toBe(true);
      }
      // The frozen one frees it as soon as it reads what was sent to it.
      for (const server of servers) await until(async () => (await isLeft(server, 'a')) === 0);
    }
    expect(last).toBeGreaterThan(0);
  });
});

describe('A claim whose answers are lost', () => {
  it('is refused as unavailable and leaves nothing behind once that is known (rule 2)', async () => {
    const store = await storeOf(proxies);
    for (const proxy of proxies) proxy.swallowReplies();
    const claim = claimOf('lease/a', { patience: 150, ttl: 60_000 });
    expect(await store.acquire(claim)).toMatchObject({ granted: false, reason: 'unavailable' });
    for (const proxy of proxies) proxy.heal();
    for (const server of servers) await until(async () => (await isLeft(server, 'a')) === 0);
  });
});

describe('A request that comes after its connection was replaced', () => {
  const tokenOn = (server: RedisServer): Promise<string | null> =>
    ask(server, (client) => client.hget('lease:{a}', 'token'));
  const connectionsTo = (server: RedisServer): Promise<number> =>
    ask(server, async (client) => String(await client.client('LIST')).split('nestjs-lease').length);

  it('gives nothing back of a later claim by the same token (rules 1 and 7)', async () => {
    const [other, store] = [await storeOf(servers), await storeOf(proxies, { socketTimeout: 500 })];
    const [first, second, third] = proxies as [FaultProxy, FaultProxy, FaultProxy];
    // Another has the key on the last two only.
    await servers[0]!.pause();
    const held = await take(other, 'lease/a', { patience: 100, ttl: 60_000 });
    const since = performance.now();
    await until(() => performance.now() - since > 100);
    servers[0]!.resume();
    // A grant by the first, in vain; what gives it back is on its way for long.
    const claim = claimOf('lease/a', { ttl: 60_000 });
    for (const way of [second, third]) way.stall();
    const refused = store.acquire(claim);
    await until(async () => (await tokenOn(servers[0]!)) === claim.token);
    const connections = await connectionsTo(servers[0]!);
    first.stallThoseThatAreOpen();
    for (const way of [second, third]) way.heal();
    expect(await refused).toMatchObject({ granted: false, reason: 'held' });
    // The same token asks again, by another connection to the first, and gets it there and from the second.
    expect(await other.release(held, {})).toBe(true);
    third.cut();
    await until(async () => (await connectionsTo(servers[0]!)) > connections);
    await take(store, claim.key, claim);
    first.heal();
    await until(async () => (await connectionsTo(servers[0]!)) === connections);
    expect(await other.acquire(claimOf('lease/a'))).toMatchObject({ granted: false });
    expect(await tokenOn(servers[0]!)).toBe(claim.token);
    expect(await store.renew([claim])).toEqual(['renewed']);
  });
});
