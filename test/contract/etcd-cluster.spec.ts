import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startEtcdCluster, type EtcdCluster, type EtcdMember } from '../support/etcd-server.js';
import { until } from '../support/until.js';

let cluster: EtcdCluster;
const stores: EtcdLeaseStore[] = [];
const engines: LeaseEngine[] = [];

beforeEach(async () => {
  cluster = await startEtcdCluster(3);
});
afterEach(async () => {
  for (const member of cluster.members) member.resume();
  await Promise.all(engines.splice(0).map((engine) => engine.close(0, 0)));
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await cluster.stop();
});

/** Asks these first. */
function storeOf(...first: readonly EtcdMember[]): EtcdLeaseStore {
  const others = cluster.members.filter((member) => !first.includes(member));
  const store = new EtcdLeaseStore({ endpoints: [...first, ...others].map(({ url }) => url) });
  stores.push(store);
  return store;
}

/** Asks this one and no other. */
function storeAt(member: EtcdMember): EtcdLeaseStore {
  const store = new EtcdLeaseStore({ endpoints: member.url });
  stores.push(store);
  return store;
}

function engineOf(store: EtcdLeaseStore, ttl: number): LeaseEngine {
  const engine = new LeaseEngine({ store, namespace: 'lease', instance: 'test', ttl, wait: 0 });
  engines.push(engine);
  return engine;
}

const outcome = (claim: Promise<{ granted: boolean }>): Promise<boolean | 'unknown'> =>
  claim.then(
    ({ granted }) => granted,
    () => 'unknown' as const,
  );

describe('Of three members', () => {
  it('whichever is asked, one of 100 racers has the key, and fences grow (rules 1 and 8)', async () => {
    const all = cluster.members.map(storeAt);
    let last = 0;
    for (let round = 0; round < 3; round++) {
      const claims = Array.from({ length: 100 }, () => claimOf('lease/race', { patience: 10_000 }));
      const answers = await Promise.all(claims.map((claim, i) => all[i % 3]!.acquire(claim)));
      const winners = answers.flatMap((answer, i) => (answer.granted ? [{ answer, i }] : []));
      expect(winners).toHaveLength(1);
      const [{ answer, i }] = winners as [(typeof winners)[0]];
      expect(answer.granted && answer.fence).toBeGreaterThan(last);
      last = answer.granted ? answer.fence : 0;
      // Released by another than it was claimed from.
      expect(await all[(i + 1) % 3]!.release(claims[i]!, {})).toBe(true);
    }
  });

  it('whichever is asked, as many racers as there are permits have one (rule 1)', async () => {
    const all = cluster.members.map(storeAt);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        all[i % 3]!.acquire(claimOf('lease/permits', { permits: 5, patience: 10_000 })),
      ),
    );
    const fences = answers.flatMap((answer) => (answer.granted ? [answer.fence] : []));
    expect(fences).toHaveLength(5);
    expect(new Set(fences).size).toBe(5);
  });

  it.each(['leader', 'follower'] as const)(
    'the %s may be killed: leases are held on, renewed and released',
    async (which) => {
      const leader = await cluster.leader();
      const victim = which === 'leader' ? leader : (await cluster.followers())[0]!;
      const store = storeOf(victim);
      const engine = engineOf(store, 6_000);
      const held = await engine.tryAcquire('held');
      const losses: unknown[] = [];
      held!.lost$.subscribe((loss) => losses.push(loss));
      const { fence } = held!;
      await victim.kill();
      // The trust that it has now can only be of a renewal after that.
      const killedAt = performance.now();
      await until(() => performance.now() + held!.remaining > killedAt + 6_000, { within: 12_000 });
      expect(losses).toEqual([]);
      expect(held!.isHeld).toBe(true);
      const other = storeOf(cluster.members.find((member) => member !== victim)!);
      expect(await other.acquire(claimOf('lease/held'))).toMatchObject({ reason: 'held' });
      expect(await held!.release()).toBe('released');
      const next = await take(other, 'lease/held');
      expect(next.fence).toBeGreaterThan(fence);
      // And back again.
      await victim.start();
      const back = storeAt(victim);
      expect(await back.renew([next])).toEqual(['renewed']);
    },
  );

  it.each(['leader', 'follower'] as const)(
    'the %s may be frozen: who asks it goes on to the next',
    async (which) => {
      const leader = await cluster.leader();
      const victim = which === 'leader' ? leader : (await cluster.followers())[0]!;
      const store = storeOf(victim);
      const held = await take(store, 'lease/frozen', { ttl: 20_000 });
      await victim.pause();
      const other = await until(
        () => store.acquire(claimOf('lease/other', { patience: 6_000 })).catch(() => undefined),
        { within: 12_000 },
      );
      expect(other).toMatchObject({ granted: true });
      expect(await store.renew([held])).toEqual(['renewed']);
      expect(await store.acquire(claimOf('lease/frozen'))).toMatchObject({ reason: 'held' });
      expect(await store.release(held, {})).toBe(true);
      victim.resume();
      // It had been asked as well; nothing of that changes anything now.
      await until(async () => (await storeAt(victim).inspect('lease/frozen')) === null);
      expect(await store.inspect('lease/other')).toMatchObject({ holders: [{}] });
    },
  );

  it('two gone, nobody grants: claims are in doubt, leases end in time (rules 4 and 9)', async () => {
    const [one, two] = await cluster.followers();
    const leader = await cluster.leader();
    const store = storeOf(leader);
    const engine = engineOf(store, 3_000);
    const lease = await engine.tryAcquire('held');
    const earned = performance.now() + lease!.remaining;
    let lostAt = 0;
    lease!.lost$.subscribe(() => (lostAt = performance.now()));
    await Promise.all([one!.kill(), two!.kill()]);
    const answers = await Promise.all([
      outcome(store.acquire(claimOf('lease/held', { patience: 1_500 }))),
      outcome(store.acquire(claimOf('lease/free', { patience: 1_500 }))),
      outcome(storeAt(leader).acquire(claimOf('lease/free', { patience: 1_500, permits: 2 }))),
    ]);
    expect(answers).toEqual(['unknown', 'unknown', 'unknown']);
    await expect(store.open()).rejects.toThrow();
    await expect(engine.tryAcquire('free')).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
    });
    await until(() => lostAt > 0);
    // It may have been renewed once before they were gone, and not after.
    expect(lostAt).toBeLessThan(earned + 3_000);
    expect(lease!.isHeld).toBe(false);

    await Promise.all([one!.start(), two!.start()]);
    const again = await until(() => engine.tryAcquire('held').catch(() => null), {
      within: 15_000,
    });
    expect(again.fence).toBeGreaterThan(lease!.fence);
  });
});

describe('All members down', () => {
  it('at boot is no reason not to start: claims are refused, then work (rule 9)', async () => {
    await Promise.all(cluster.members.map((member) => member.kill()));
    const store = storeOf();
    const engine = engineOf(store, 3_000);
    await expect(store.open()).rejects.toThrow();
    await expect(engine.tryAcquire('boot')).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
    });
    await cluster.start();
    const lease = await until(() => engine.tryAcquire('boot').catch(() => null));
    expect(await lease.release()).toBe('released');
  });

  it('and back with their data, what was held still is, and its fence', async () => {
    const store = storeOf();
    const held = await take(store, 'lease/crash', { ttl: 60_000 });
    await Promise.all(cluster.members.map((member) => member.kill()));
    await expect(store.renew([held])).rejects.toThrow();
    await cluster.start();
    await until(() =>
      store.renew([held]).then(
        ([renewed]) => renewed === 'renewed',
        () => false,
      ),
    );
    expect((await store.inspect(held.key))?.holders[0]?.fence).toBe(held.fence);
    expect(await store.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
  });
});
