import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LeaseEvent } from '../../lib/lease/events.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { Lease } from '../../lib/lease/lease.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import type { Hold } from '../../lib/stores/lease-store.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

const TTL = 6_000;
const MANY = 1_500;

/** Counts what is renewed, and by how many requests. */
class CountingStore extends RedisLeaseStore {
  requests = 0;
  readonly renewals = new Map<string, number>();

  override renew(holds: readonly Hold[]) {
    this.requests++;
    for (const { key } of holds.filter((hold) => hold.key.startsWith('many/k'))) {
      this.renewals.set(key, (this.renewals.get(key) ?? 0) + 1);
    }
    return super.renew(holds);
  }

  get renewed(): number {
    return [...this.renewals.values()].reduce((sum, times) => sum + times, 0);
  }

  /** How often each of them was renewed at least. */
  get least(): number {
    return this.renewals.size < MANY ? 0 : Math.min(...this.renewals.values());
  }
}

describe('A process that holds very many leases', () => {
  let server: RedisServer;
  let store: CountingStore;
  let engine: LeaseEngine;
  const events: LeaseEvent[] = [];
  const leases: Lease[] = [];

  beforeAll(async () => {
    server = await startRedis();
    store = new CountingStore(server.url);
    await store.open();
    engine = new LeaseEngine({ store, namespace: 'many', instance: 'me', ttl: TTL, wait: 0 });
    engine.events.all.subscribe((event) => events.push(event));
    for (let i = 0; i < MANY; i += 100) {
      const some = Array.from({ length: 100 }, (_, j) => engine.acquire(`k${i + j}`));
      leases.push(...(await Promise.all(some)));
    }
  });
  afterAll(async () => {
    await engine.close(0, 0);
    await store.close();
    await server.stop();
  });

  it('keeps all of them, in few requests (rule 6)', async () => {
    await until(() => store.least >= 2, { timeout: 3 * TTL });
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(store.renewed / store.requests).toBeGreaterThan(10);
  });

  it('keeps all of them through a burst of other work (rule 6)', async () => {
    const enough = store.least + 2;
    let bursts = 0;
    while (store.least < enough && !events.some(({ type }) => type === 'lost')) {
      const name = `burst${bursts++}`;
      // Many short leases at once, and an event loop that is not always there.
      await Promise.all(Array.from({ length: 200 }, (_, i) => engine.run(`${name}:${i}`, () => i)));
      const busyUntil = performance.now() + 20;
      while (performance.now() < busyUntil);
    }
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(leases.filter(({ isHeld }) => isHeld)).toHaveLength(MANY);
  });
});
