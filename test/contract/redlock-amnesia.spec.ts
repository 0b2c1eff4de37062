import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { REDLOCK_QUARANTINE } from '../../lib/lease.messages.js';
import type { Grant, Refusal } from '../../lib/stores/lease-store.js';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, ask, startNodes, urlsOf } from '../support/redlock-nodes.js';
import { until } from '../support/until.js';

const MAX_TTL = 1_200;
const NODE = 'nestjs-lease:redlock';

let servers: RedisServer[];
const stores: RedlockLeaseStore[] = [];

beforeEach(async () => {
  servers = await startNodes(3);
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

function storeOf(maxTtl = MAX_TTL): RedlockLeaseStore {
  const store = new RedlockLeaseStore(urlsOf(servers), { maxTtl });
  stores.push(store);
  return store;
}

const knows = (server: RedisServer, field: string): Promise<string | null> =>
  ask(server, (client) => client.hget(NODE, field));

const votes = async (server: RedisServer): Promise<boolean> =>
  (await knows(server, 'admitted')) === '1';

const untilGranted = (store: RedlockLeaseStore, key: string, ttl = MAX_TTL): Promise<Grant> =>
  until(
    async () => {
      const answer = await store.acquire(claimOf(key, { ttl }));
      return answer.granted ? answer : undefined;
    },
    { within: 10_000 },
  );

describe('Nodes that nobody has used before', () => {
  it('grant nothing for maxTtl, and say for how long; then they do', async () => {
    const store = storeOf();
    const since = performance.now();
    await expect(store.open()).rejects.toThrow(/3 of 3 Redis nodes have restarted/);
    const refusal = (await store.acquire(claimOf('lease/a', { ttl: MAX_TTL }))) as Refusal;
    expect(refusal).toMatchObject({ granted: false, reason: 'unavailable' });
    const { retryAfterMs, cause } = refusal;
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(MAX_TTL);
    const counts = [2, 3].map((count) => REDLOCK_QUARANTINE(count, 3, retryAfterMs!));
    expect(counts).toContain((cause as Error).message);
    await untilGranted(store, 'lease/a');
    expect(performance.now() - since).toBeGreaterThanOrEqual(MAX_TTL - 2);
  });

  it('are in one quarantine for all processes', async () => {
    const [first, second] = [storeOf(), storeOf()];
    await expect(first.open()).rejects.toThrow();
    const since = await knows(servers[0]!, 'since');
    await expect(second.open()).rejects.toThrow();
    expect(await knows(servers[0]!, 'since')).toBe(since);
    await untilGranted(first, 'lease/a');
    await untilGranted(second, 'lease/b');
  });

  it('wait for the longest ttl that anybody uses', async () => {
    const [short, long] = [storeOf(400), storeOf(MAX_TTL)];
    const since = performance.now();
    await expect(long.open()).rejects.toThrow();
    await expect(short.open()).rejects.toThrow();
    await untilGranted(short, 'lease/a', 300);
    expect(performance.now() - since).toBeGreaterThanOrEqual(MAX_TTL - 2);
  });

  it('one of which is never there do with the other two', async () => {
    await servers[2]!.kill();
    const store = storeOf();
    await untilGranted(store, 'lease/a');
  });
});

describe('A node that restarts empty', () => {
  beforeEach(() => admitAll(servers));

  const restart = async (server: RedisServer, ...seenBy: RedlockLeaseStore[]): Promise<void> => {
    await server.restart();
    for (const store of seenBy) {
      // Connected again, and so seen.
      await until(async () => {
        await store.inspect('lease/nothing').catch(() => undefined);
        return (await knows(server, 'run')) !== null;
      });
    }
  };

  it('helps nobody to a key that is held', async () => {
    const [holder, thief] = [storeOf(), storeOf()];
    await servers[2]!.pause();
    const held = await take(holder, 'lease/a', { ttl: MAX_TTL, patience: 100 });
    // Long past the deadline of the claim that the third has not read yet.
    const since = performance.now();
    await until(() => performance.now() - since > 200);
    servers[2]!.resume();
    await restart(servers[0]!, thief);
    // The first has forgotten it, the third never knew it: without a quarantine, a majority.
    for (let i = 0; i < 20; i++) {
      expect(await thief.acquire(claimOf('lease/a', { ttl: MAX_TTL }))).toMatchObject({
        granted: false,
      });
    }
    expect(await holder.release(held, {}).catch(() => 'unknown')).not.toBe(false);
  });

  it('votes again after its time, and was told the fences meanwhile (rule 8)', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/a', { ttl: MAX_TTL });
    const since = performance.now();
    await restart(servers[0]!, store);
    expect(await votes(servers[0]!)).toBe(false);
    await until(() => votes(servers[0]!));
    expect(performance.now() - since).toBeGreaterThanOrEqual(MAX_TTL - 2);
    expect(Number(await knows(servers[0]!, 'high'))).toBeGreaterThanOrEqual(held.fence);
  });

  it('does not vote again before a majority of the others can be asked (rule 8)', async () => {
    const store = storeOf(400);
    await take(store, 'lease/a', { ttl: 400 });
    await restart(servers[0]!, store);
    await servers[1]!.pause();
    const since = performance.now();
    await until(() => performance.now() - since > 1_000);
    expect(await votes(servers[0]!)).toBe(false);
    servers[1]!.resume();
    await until(() => votes(servers[0]!));
  });

  it('is given back by a renewal what is held, under the same fence', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/a', { ttl: MAX_TTL });
    await restart(servers[0]!, store);
    const record = (): Promise<Record<string, string>> =>
      ask(servers[0]!, (client) => client.hgetall('lease:{a}') as Promise<Record<string, string>>);
    await until(async () => {
      expect(await store.renew([held])).toEqual(['renewed']);
      return (await record())['token'] !== undefined;
    });
    expect(await record()).toMatchObject({
      token: held.token,
      fence: String(held.fence),
      settled: '1',
      instance: 'test',
    });
  });

  it('one after the other under held leases: one holder, and fences that grow', async () => {
    const [mine, theirs] = [storeOf(), storeOf()];
    let last = 0;
    for (let round = 0; round < 6; round++) {
      const { key, ...claim } = claimOf('lease/a', { ttl: MAX_TTL });
      const held = { key, ...claim };
      const { fence } = await until(
        async () => {
          const answer = await mine.acquire(held);
          return answer.granted ? answer : undefined;
        },
        { within: 10_000 },
      );
      expect(fence).toBeGreaterThan(last);
      last = fence;
      const server = servers[round % 3]!;
      await restart(server, theirs, mine);
      // Held all the while that the node comes back.
      await until(
        async () => {
          // On a busy machine a node may take too long to say so.
          expect(await mine.renew([held])).not.toEqual(['gone']);
          expect(await theirs.acquire(claimOf(key, { ttl: MAX_TTL }))).toMatchObject({
            granted: false,
          });
          return votes(server);
        },
        { within: 10_000 },
      );
      await mine.release(held, {});
    }
  }, 60_000);

  it('as all the others do at the same time ends the lease, and the next fence is higher', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/a', { ttl: MAX_TTL });
    await Promise.all(servers.map((server) => server.restart()));
    await until(async () => (await store.open().catch(() => undefined)) === undefined);
    expect(await store.renew([held]).catch(() => ['unknown'])).toEqual(['unknown']);
    const since = performance.now();
    const { fence } = await untilGranted(storeOf(), 'lease/a');
    expect(fence).toBeGreaterThan(held.fence);
    expect(performance.now() - since).toBeGreaterThan(0);
  });
});

describe('A node that loses its data', () => {
  beforeEach(() => admitAll(servers));

  it('without a restart is in quarantine from the next request on', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/a', { ttl: MAX_TTL });
    await ask(servers[0]!, (client) => client.flushall());
    expect(await store.renew([held])).toEqual(['renewed']);
    await until(async () => (await knows(servers[0]!, 'admitted')) === '0');
    expect(await store.acquire(claimOf('lease/a', { ttl: MAX_TTL }))).toMatchObject({
      granted: false,
      reason: 'held',
    });
  });

  it('of one lease only is given it back, but not what another took', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/a', { ttl: MAX_TTL });
    const [first, second] = servers as [RedisServer, RedisServer];
    await ask(first, (client) => client.del('lease:{a}'));
    await ask(second, (client) => client.hset('lease:{a}', 'token', 'another'));
    const tokens = (): Promise<(string | null)[]> =>
      Promise.all(servers.map((server) => ask(server, (c) => c.hget('lease:{a}', 'token'))));
    // One has it, one lost it, one is another's: no majority, and nothing is healed.
    expect(await store.renew([held])).toEqual(['gone']);
    expect(await tokens()).toEqual([null, 'another', held.token]);
    await ask(second, (client) => client.hset('lease:{a}', 'token', held.token));
    expect(await store.renew([held])).toEqual(['renewed']);
    await until(async () => (await tokens()).every((token) => token === held.token));
  });

  it('is not given back what was released meanwhile (rule 5)', async () => {
    const store = storeOf();
    for (let i = 0; i < 30; i++) {
      const held = await take(store, 'lease/a', { ttl: MAX_TTL });
      await ask(servers[i % 3]!, (client) => client.del('lease:{a}'));
      const renewing = store.renew([held]);
      if (i % 2 === 0) await renewing;
      await store.release(held, {}).catch(() => undefined);
      await renewing;
      await store.inspect('lease/a');
      for (const server of servers) {
        expect(await ask(server, (client) => client.exists('lease:{a}'))).toBe(0);
      }
    }
  });
});

describe('Without a quarantine', () => {
  it('nodes that nobody has used before grant at once', async () => {
    const store = new RedlockLeaseStore(urlsOf(servers), { quarantine: false });
    stores.push(store);
    await store.open();
    await take(store, 'lease/a');
  });
});
