import { describe, expect, it } from '@jest/globals';
import type { LeaseHeldException } from '../../../lib/exceptions/lease-held.exception.js';
import { settle } from '../../support/virtual-clock.js';
import { outcome, TRUSTED, TTL, World } from './world.js';

const three = { permits: 3 };

describe('permits', () => {
  it('let so many hold the key together, and no more (rule 1)', async () => {
    const world = new World();
    const engines = [world.engine, world.rival(), world.rival()];
    const asked = Array.from({ length: 100 }, (_, i) => engines[i % 3]!.tryAcquire('k', three));
    const leases = (await Promise.all(asked)).filter((lease) => lease !== null);
    expect(leases).toHaveLength(3);
    expect(new Set(leases.map(({ fence }) => fence)).size).toBe(3);
  });

  it('are one each: released one by one, renewed one by one', async () => {
    const world = new World();
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => world.engine.acquire('k', three)));
    await world.clock.advance(3 * TTL);
    expect([a!.isHeld, b!.isHeld, c!.isHeld]).toEqual([true, true, true]);
    expect(await world.engine.tryAcquire('k', three)).toBeNull();
    expect(await b!.release()).toBe('released');
    const d = await world.engine.tryAcquire('k', three);
    expect(d!.fence).toBeGreaterThan(c!.fence);
    expect([a!.isHeld, c!.isHeld]).toEqual([true, true]);
  });

  it('that end free one place: the holders beside it stay', async () => {
    const world = new World();
    const ending = await world.engine.acquire('k', { ...three, renew: false });
    const staying = await world.engine.acquire('k', { ...three, permits: 2 });
    await world.clock.advance(TRUSTED);
    expect([ending.isHeld, staying.isHeld]).toEqual([false, true]);
    expect(await world.engine.tryAcquire('k', { permits: 2 })).not.toBeNull();
  });

  it('respect a holder that has the key for itself alone (rule 1)', async () => {
    const world = new World();
    const alone = await world.engine.acquire('k');
    expect(await world.rival().tryAcquire('k', three)).toBeNull();
    await alone.release();
    expect(await world.rival().tryAcquire('k', three)).not.toBeNull();
  });

  it('are respected by one that wants the key for itself alone (rule 1)', async () => {
    const world = new World();
    const shared = await Promise.all([1, 2].map(() => world.engine.acquire('k', three)));
    const alone = outcome(world.rival().acquire('k', { wait: '1m' }));
    await world.clock.advance(1_000);
    await shared[0]!.release();
    await world.clock.advance(1_000);
    expect(alone.state).toBe('pending');
    await shared[1]!.release();
    await settle();
    expect(alone.state).toBe('fulfilled');
  });

  it('say when enough of them can be free (rule 9)', async () => {
    const world = new World();
    for (const ttl of ['10s', '20s', '30s'] as const) {
      await world.engine.acquire('k', { ...three, ttl, renew: false });
    }
    const retryAfterOf = (permits: number): Promise<number | undefined> =>
      world
        .rival()
        .acquire('k', { permits })
        .then(
          () => undefined,
          (error: LeaseHeldException) => error.retryAfterMs,
        );
    expect(await retryAfterOf(3)).toBe(10_000);
    expect(await retryAfterOf(2)).toBe(20_000);
    expect(await retryAfterOf(1)).toBe(30_000);
  });

  it('entered again are the same permit', async () => {
    const { engine, memory } = new World();
    await engine.run(
      'k',
      async () => {
        await engine.run('k', () => {}, three);
        expect((await memory.inspect('test/k'))!.holders).toHaveLength(1);
      },
      three,
    );
  });

  it('kept for `minHold` keep their place', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { permits: 2, minHold: '10s' });
    await lease.release();
    expect(await world.engine.tryAcquire('k', { permits: 2 })).not.toBeNull();
    expect(await world.engine.tryAcquire('k', { permits: 2 })).toBeNull();
  });
});
