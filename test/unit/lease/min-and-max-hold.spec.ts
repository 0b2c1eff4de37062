import { describe, expect, it } from '@jest/globals';
import { settle } from '../../support/virtual-clock.js';
import { hang } from '../../support/scripted-store.js';
import { deferred, outcome, TRUSTED, TTL, World } from './world.js';

describe('minHold', () => {
  it('keeps the key taken for so long after the grant, by nobody', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { minHold: '10s' });
    await world.clock.advance(4_000);
    expect(await lease.release()).toBe('released');
    expect(await world.engine.inspect('k')).toEqual({ key: 'k', holders: [], freeInMs: 6_000 });
    await expect(world.rival().acquire('k')).rejects.toMatchObject({ retryAfterMs: 6_000 });
    await world.clock.advance(5_999);
    expect(await world.rival().tryAcquire('k')).toBeNull();
    await world.clock.advance(1);
    expect(await world.rival().tryAcquire('k')).not.toBeNull();
  });

  it('adds nothing to a lease that was held for longer', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { minHold: '10s' });
    await world.clock.advance(10_000);
    await lease.release();
    expect(await world.isTaken('k')).toBe(false);
  });

  it('is waited for', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { minHold: '10s' });
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await lease.release();
    await world.clock.advance(9_999);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(10);
    expect(waiting.state).toBe('fulfilled');
  });

  it('holds after a run that failed, too', async () => {
    const world = new World();
    const run = world.engine.run('k', () => Promise.reject(new Error('mine')), { minHold: '10s' });
    await run.catch(() => {});
    expect(await world.isTaken('k')).toBe(true);
  });
});

describe('maxHold', () => {
  it('ends a lease that is renewed, and says why', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { maxHold: '20s' });
    const { signal } = lease;
    await world.clock.advance(19_999);
    expect(lease.isHeld).toBe(true);
    expect(lease.remaining).toBe(1);
    await world.clock.advance(1);
    expect(signal.reason).toMatchObject({ reason: 'max-hold' });
    expect(world.of('lost').map(({ reason, heldMs }) => ({ reason, heldMs }))).toEqual([
      { reason: 'max-hold', heldMs: 20_000 },
    ]);
    await settle();
    expect(await world.isTaken('k')).toBe(false);
    expect(world.engine.agenda.size).toBe(0);
  });

  it('is seen without a timer (rule 4)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire('k', { maxHold: 100 });
    clock.freeze(100);
    expect(lease.isHeld).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'max-hold' });
  });

  it('is counted from before the request left (rule 3)', async () => {
    const { engine, store, clock } = new World();
    store.next('acquire', async (call) => {
      clock.freeze(400);
      return call();
    });
    const lease = await engine.acquire('k', { maxHold: 1_000 });
    expect(lease.remaining).toBe(600);
  });

  it('frees the key of a handler that hangs', async () => {
    const world = new World();
    const hanging = deferred();
    const run = outcome(world.engine.run('k', () => hanging.promise, { maxHold: '30s' }));
    const waiting = outcome(world.rival().acquire('k', { wait: '1m' }));
    await world.clock.advance(30_000);
    await settle();
    expect(waiting.state).toBe('fulfilled');
    hanging.resolve();
    await settle();
    expect(run.error).toMatchObject({ code: 'LEASE_LOST', reason: 'max-hold' });
  });

  it('is not the reason of what ended before it (rule 5)', async () => {
    const world = new World();
    world.store.always('renew', hang);
    await world.engine.acquire('k', { maxHold: TRUSTED + 1 });
    world.clock.freeze(10 * TTL);
    await world.clock.advance(0);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['expired']);
  });
});
