import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ETCD_OTHER_CLUSTER, ETCD_RELEASE_IN_DOUBT } from '../../lib/lease.messages.js';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startEtcdProxy, type EtcdProxy } from '../support/etcd-proxy.js';
import { startEtcd, type EtcdMember } from '../support/etcd-server.js';
import { realProcess } from '../support/real-process.js';
import { until } from '../support/until.js';

let server: EtcdMember;
let proxy: EtcdProxy;
/** Through the proxy. */
let store: EtcdLeaseStore;
/** Beside it. */
let observer: EtcdLeaseStore;
const stores: EtcdLeaseStore[] = [];
let keys = 0;
let key: string;

beforeAll(async () => {
  server = await startEtcd();
});
beforeEach(async () => {
  key = `lease/late-${keys++}`;
  proxy = await startEtcdProxy(server.port);
  store = storeOf(proxy.url);
  observer = storeOf(server.url);
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((one) => one.close()));
  await proxy.close();
});
afterAll(() => server.stop());

function storeOf(...endpoints: string[]): EtcdLeaseStore {
  const one = new EtcdLeaseStore({ endpoints });
  stores.push(one);
  return one;
}

const times = (path: string): number => proxy.requests.filter((one) => one.path === path).length;
const isFree = async (): Promise<boolean> => (await observer.inspect(key)) === null;
/** How many etcd leases there are: none is left over. */
const leases = async (): Promise<number> =>
  ((await server.post('v3/lease/leases', {}))['leases'] as unknown[] | undefined)?.length ?? 0;

describe('A claim that etcd executes late', () => {
  it.each([1, 2])('fails: its etcd lease is gone, permits: %i (rule 2)', async (permits) => {
    proxy.script = ({ isWrite }) => (isWrite ? 'hold' : undefined);
    const claim = claimOf(key, { permits, patience: 300, ttl: 60_000 });
    await expect(store.acquire(claim)).rejects.toThrow();
    await until(() => times('v3/lease/revoke') > 0);
    await until(async () => (await leases()) === 0);
    for (const text of await proxy.deliver()) expect(text).toContain('lease not found');
    expect(await isFree()).toBe(true);
  });

  it('is undone when its etcd lease is ended after it (rule 2)', async () => {
    proxy.script = ({ path, isWrite }) =>
      isWrite || path === 'v3/lease/revoke' ? 'hold' : undefined;
    const claim = claimOf(key, { patience: 300, ttl: 60_000 });
    await expect(store.acquire(claim)).rejects.toThrow();
    await until(() => proxy.requests.at(-1)?.path === 'v3/lease/revoke');
    // In this order.
    proxy.script = () => undefined;
    await proxy.deliver();
    await until(isFree);
    await take(observer, key);
  });

  it('is ended however often the server does not answer that', async () => {
    const before = await leases();
    let lost = 0;
    proxy.script = ({ path, isWrite }) => {
      if (isWrite) return 'swallow';
      return path === 'v3/lease/revoke' && lost++ < 4 ? 'reset' : undefined;
    };
    // Executed, and nobody told.
    const claim = claimOf(key, { patience: 200, ttl: 60_000 });
    await store.acquire(claim).catch(() => undefined);
    await until(() => lost > 4);
    await until(isFree);
    await until(async () => (await leases()) <= before);
  });

  it('is ended without a warning when it is one of dozens (rule 12)', async () => {
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown): void => void warnings.push(String(warning));
    realProcess.on('warning', onWarning);
    proxy.script = ({ path, isWrite }) =>
      isWrite || path === 'v3/lease/revoke' ? 'reset' : undefined;
    const claims = Array.from({ length: 24 }, (_, i) =>
      store.acquire(claimOf(`${key}-${i}`, { ttl: 60_000 })).catch(() => undefined),
    );
    expect(await Promise.all(claims)).toEqual(claims.map(() => undefined));
    await until(() => times('v3/lease/revoke') >= 2 * claims.length);
    realProcess.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('ends by its own ttl when its process is gone too', async () => {
    proxy.script = ({ path, isWrite }) =>
      isWrite || path === 'v3/lease/revoke' ? 'hold' : undefined;
    const claim = claimOf(key, { patience: 300, ttl: 1_000 });
    await expect(store.acquire(claim)).rejects.toThrow();
    await store.close();
    proxy.script = () => 'reset';
    await proxy.deliver();
    await until(isFree);
  });

  it('by a member that was frozen in between is not held (rule 2)', async () => {
    proxy.script = async ({ isWrite }) => {
      if (isWrite) await server.pause();
      return undefined;
    };
    const claim = claimOf(key, { patience: 300, ttl: 60_000 });
    try {
      await expect(store.acquire(claim)).rejects.toThrow();
    } finally {
      server.resume();
    }
    proxy.script = () => undefined;
    const next = claimOf(key);
    await until(() =>
      observer.acquire(next).then(
        ({ granted }) => granted,
        () => false,
      ),
    );
    // And it stays so: whatever was under way has been executed or has failed.
    await setTimeout(300);
    expect(await observer.renew([next])).toEqual(['renewed']);
    expect((await observer.inspect(key))?.holders).toHaveLength(1);
  });

  it('but in its time is granted', async () => {
    proxy.script = async ({ isWrite }) => {
      if (isWrite) await setTimeout(100);
      return undefined;
    };
    await take(store, key, { patience: 5_000 });
  });
});

describe('An answer that was lost', () => {
  const once = (matches: (path: string, isWrite: boolean) => boolean): void => {
    let isLost = false;
    proxy.script = ({ path, isWrite }) => {
      if (isLost || !matches(path, isWrite)) return undefined;
      isLost = true;
      return 'swallow';
    };
  };

  it('to a grant of an etcd lease is asked for again, under the same id', async () => {
    once((path) => path === 'v3/lease/grant');
    await take(store, key);
    expect(times('v3/lease/grant')).toBe(2);
    expect(await leases()).toBeGreaterThan(0);
  });

  it.each([1, 3])(
    'to a claim is asked for again: held once, permits: %i (rule 2)',
    async (permits) => {
      once((_, isWrite) => isWrite);
      const held = await take(store, key, { permits });
      const record = await observer.inspect(key);
      expect(record?.holders.map(({ fence }) => fence)).toEqual([held.fence]);
      expect(await store.renew([held])).toEqual(['renewed']);
      expect(await store.release(held, {})).toBe(true);
      expect(await isFree()).toBe(true);
    },
  );

  it('to a claim is asked for by the next request of the same token: same fence (rule 2)', async () => {
    const claim = claimOf(key, { patience: 300, ttl: 30_000 });
    let isOut = true;
    // The first stays under way, and is executed when the second has been granted.
    proxy.script = ({ isWrite }) => (isWrite && isOut ? 'hold' : undefined);
    await expect(store.acquire(claim)).rejects.toThrow();
    isOut = false;
    const first = await store.acquire({ ...claim, patience: 2_000 });
    await proxy.deliver();
    expect(await store.renew([claim])).toEqual(['renewed']);
    expect(await store.acquire({ ...claim, patience: 2_000 })).toEqual(first);
    expect((await observer.inspect(key))?.holders).toHaveLength(1);
  });

  it('to a claim does not end what the next request of the same token got (rules 2 and 7)', async () => {
    const claim = claimOf(key, { patience: 300, ttl: 30_000 });
    let isOut = true;
    proxy.script = ({ path, isWrite }) => {
      if (path === 'v3/lease/revoke') return 'hold';
      return isWrite && isOut ? 'swallow' : undefined;
    };
    const first = await store.acquire(claim).catch(() => undefined);
    isOut = false;
    const second = await store.acquire({ ...claim, patience: 2_000 });
    expect(second).toMatchObject({ granted: true });
    if (first?.granted) expect(second).toEqual(first);
    // All that was to be ended for the first is ended only now.
    proxy.script = () => undefined;
    await proxy.deliver();
    expect(await store.renew([claim])).toEqual(['renewed']);
  });

  it('to a release is no false "lost": there is no telling (rule 7)', async () => {
    const held = await take(store, key);
    once((_, isWrite) => isWrite);
    await expect(store.release(held, {})).rejects.toThrow(ETCD_RELEASE_IN_DOUBT(key));
    expect(await isFree()).toBe(true);
  });

  it.each([
    ['a place that is kept', { keepFor: 30_000 }],
    ['a mark of work that is done', { done: { once: 'tick', remember: 30_000 } }],
  ])('to a release is told by %s', async (_, how) => {
    const held = await take(store, key, { once: 'tick' });
    once((_path, isWrite) => isWrite);
    expect(await store.release(held, how)).toBe(true);
    const next = await observer.acquire(claimOf(key, { once: 'tick' }));
    expect(next).toMatchObject({ granted: false });
  });

  it('to a renewal for longer is asked for again', async () => {
    const held = await take(store, key, { ttl: 2_000 });
    once((_, isWrite) => isWrite);
    expect(await store.renew([{ ...held, ttl: 30_000 }])).toEqual(['renewed']);
    const record = await observer.inspect(key);
    expect(record?.freeInMs).toBeGreaterThan(20_000);
    expect(record?.holders[0]?.fence).toBe(held.fence);
  });
});

describe('Answers that never come', () => {
  const secondsLeft = async (): Promise<number[]> => {
    const { leases: all = [] } = await server.post('v3/lease/leases', {});
    const told = (all as { ID: string }[]).map(({ ID }) =>
      server.post('v3/lease/timetolive', { ID }),
    );
    return (await Promise.all(told)).map(({ TTL }) => Number(TTL));
  };

  it('to a renewal for longer do not free what is held (rules 1 and 5)', async () => {
    const held = await take(store, key, { ttl: 10_000 });
    proxy.script = ({ isWrite }) => (isWrite ? 'swallow' : undefined);
    await expect(store.renew([{ ...held, ttl: 60_000 }])).rejects.toThrow();
    proxy.script = () => undefined;
    await until(() => times('v3/lease/revoke') > 0);
    expect(await observer.acquire(claimOf(key))).toMatchObject({ reason: 'held' });
    expect(await store.renew([held])).toEqual(['renewed']);
    expect((await observer.inspect(key))?.holders[0]?.fence).toBe(held.fence);
  });

  it('to a renewal for longer do not let it shorten what was renewed since', async () => {
    const held = await take(store, key, { ttl: 5_000 });
    proxy.script = ({ isWrite }) => (isWrite ? 'hold' : undefined);
    await expect(store.renew([{ ...held, ttl: 6_000 }])).rejects.toThrow();
    proxy.script = () => undefined;
    // Only when nothing can come of it any more.
    await until(() => times('v3/lease/revoke') > 0);
    await proxy.deliver();
    expect(await store.renew([held])).toEqual(['renewed']);
    expect((await observer.inspect(key))?.holders[0]?.fence).toBe(held.fence);
  });

  it.each([
    ['the mark of work that is done', { done: { once: 'tick', remember: 60_000 } }, 'done'],
    ['the place that is kept', { keepFor: 60_000 }, 'held'],
  ])('to a release do not take away %s (rule 7)', async (_, how, reason) => {
    const held = await take(store, key, { once: 'tick', ttl: 2_000 });
    proxy.script = ({ isWrite }) => (isWrite ? 'swallow' : undefined);
    await expect(store.release(held, how)).rejects.toThrow();
    const told = proxy.requests.length;
    proxy.script = () => undefined;
    await until(() => proxy.requests.length > told);
    const next = claimOf(key, { once: 'tick' });
    expect(await observer.acquire(next)).toMatchObject({ granted: false, reason });
  });

  it('to a release leave no etcd lease for a mark that was not left', async () => {
    const held = await take(store, key, { ttl: 1_000 });
    proxy.script = ({ isWrite }) => (isWrite ? 'reset' : undefined);
    const done = { once: 'tick', remember: 500_000 };
    await expect(store.release(held, { done })).rejects.toThrow();
    await until(isFree);
    proxy.script = () => undefined;
    await until(async () => (await secondsLeft()).every((seconds) => seconds < 300));
    await take(observer, key, { once: 'tick' });
  });

  it.each([
    ['a claim', 0, () => store.acquire(claimOf(key, { ttl: 500_000, patience: 1_000 }))],
    [
      'one of two things that a release leaves behind',
      1,
      async () => {
        const held = await take(observer, key);
        const done = { once: 'tick', remember: 500_000 };
        return store.release(held, { keepFor: 500_000, done });
      },
    ],
  ])('to the grant of an etcd lease for %s leave none', async (_, answered, ask) => {
    let granted = 0;
    proxy.script = ({ path }) =>
      path === 'v3/lease/grant' && granted++ >= answered ? 'swallow' : undefined;
    await expect(ask()).rejects.toThrow();
    expect(granted).toBeGreaterThan(answered);
    await until(async () => (await secondsLeft()).every((seconds) => seconds < 300));
  });
});

describe('A renewal that a deposed leader answers', () => {
  it('is none: it is of another term than the look before it (rules 3 and 6)', async () => {
    const held = await take(store, key);
    proxy.script = ({ path }) =>
      path === 'v3/lease/keepalive'
        ? { edit: (text) => text.replaceAll(/"raft_term":"\d+"/g, '"raft_term":"1"') }
        : undefined;
    expect(await store.renew([held])).toEqual(['unknown']);
    proxy.script = () => undefined;
    expect(await store.renew([held])).toEqual(['renewed']);
  });

  it('of a lease that it does not know is no loss while the key is there (rule 6)', async () => {
    const held = await take(store, key);
    proxy.script = ({ path }) =>
      path === 'v3/lease/keepalive'
        ? { edit: (text) => text.replaceAll(/,"TTL":"\d+"/g, '') }
        : undefined;
    expect(await store.renew([held])).toEqual(['unknown']);
  });
});

describe('A claim that begins at one cluster and goes on at another', () => {
  it.each([
    { permits: 1, seen: 0 },
    { permits: 2, seen: 0 },
    { permits: 2, seen: 1 },
  ])('makes no holder too many there: %p (rule 1)', async ({ permits, seen }) => {
    const other = await startEtcd();
    const there = storeOf(other.url);
    for (let i = 0; i < permits; i++) await take(there, key, { permits });
    // This one has counted further.
    for (let i = 0; i < 10; i++) await observer.release(await take(observer, key), {});
    for (let i = 0; i < seen; i++) await take(observer, key, { permits });
    proxy.script = ({ path }) => (path === 'v3/kv/txn' ? undefined : 'reset');
    const claim = claimOf(key, { permits });
    const answer = await storeOf(proxy.url, other.url)
      .acquire(claim)
      .catch((error: Error) => error.message);
    if (seen === 0) expect(answer).toMatchObject({ reason: 'held' });
    else expect(answer).toBe(ETCD_OTHER_CLUSTER(key));
    expect(times('v3/kv/txn')).toBe(1);
    await until(async () => (await there.inspect(key))?.holders.length === permits);
    await other.stop();
  });
});

describe('An owner token', () => {
  it('does not leave the process (rule 15)', async () => {
    const held = await take(store, key, { once: 'tick' });
    await store.renew([held]);
    await store.release(held, { keepFor: 1_000, done: { once: 'tick', remember: 1_000 } });
    expect(proxy.requests.length).toBeGreaterThan(5);
    for (const { body } of proxy.requests) {
      const plain = body.replaceAll(/"([A-Za-z0-9+/]+=*)"/g, (_, text: string) =>
        Buffer.from(text, 'base64').toString(),
      );
      expect(body + plain).not.toContain(held.token.slice(0, 18));
    }
  });
});
