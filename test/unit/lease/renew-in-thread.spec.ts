import { describe, expect, it } from '@jest/globals';
import { LeaseEngine } from '../../../lib/lease/lease-engine.js';
import { MAIN_THREAD_HANGS, NO_THREAD, THREAD_ENDED } from '../../../lib/lease.messages.js';
import { MemoryLeaseStore } from '../../../lib/stores/memory/memory-lease-store.js';
import { answer, fail, Gate, hang, pass } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { HUNG_AFTER, ThreadWorld } from './thread-world.js';
import { THIRD, TRUSTED, TTL } from './world.js';

describe('renewal in a thread', () => {
  it('keeps a lease without the event loop renewing anything (rule 6)', async () => {
    const { engine, clock, store, threadStore } = await ThreadWorld.started();
    const lease = await engine.acquire('k');
    await clock.advance(20 * TTL);
    expect(lease.isHeld).toBe(true);
    expect(threadStore.renewals.length).toBeGreaterThanOrEqual(60);
    expect(store.renewals).toHaveLength(0);
  });

  it('keeps a lease through a blocked event loop, and who looks first finds it held', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.block(3 * TTL);
    expect(await world.isTaken('k')).toBe(true);
    expect(lease.isHeld).toBe(true);
    expect(lease.remaining).toBeGreaterThanOrEqual(TRUSTED - THIRD);
    await world.wake();
    await world.clock.advance(3 * TTL);
    expect(lease.isHeld).toBe(true);
    expect(world.of('lost')).toEqual([]);
  });

  it('trusts what the thread earned from before its request left (rule 3)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    const gate = new Gate();
    world.threadStore.next('renew', gate.reply);
    world.threadStore.always('renew', hang);
    await world.block(THIRD + 500);
    gate.open();
    await settle();
    expect(lease.remaining).toBeCloseTo(TRUSTED - 500);
  });

  it('ends after a bound when the event loop hangs, and its holder finds itself lost (rule 4)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.block(HUNG_AFTER);
    expect(await world.isTaken('k')).toBe(true);
    await world.clock.advance(TTL);
    expect(await world.isTaken('k')).toBe(false);
    expect(lease.isHeld).toBe(false);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['expired']);
    await world.wake();
    expect(world.of('lost')).toHaveLength(1);
  });

  it('goes on when the event loop that hung runs again in time, and says what happened', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.block(HUNG_AFTER + THIRD);
    expect(lease.isHeld).toBe(true);
    await world.wake();
    await world.clock.advance(2 * TTL);
    expect(lease.isHeld).toBe(true);
    const said = world.of('renewal-failed').map(({ error }) => (error as Error).message);
    expect(said[0]).toMatch(MAIN_THREAD_HANGS(0).replace(/ 0 ms.*/, ''));
  });

  it('does not hold what nobody renewed while the whole process stood still (rule 4)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.clock.advance(TTL);
    world.clock.freeze(TRUSTED);
    expect(lease.isHeld).toBe(false);
    await world.clock.advance(TTL);
    expect(lease.isHeld).toBe(false);
    expect(await world.isTaken('k')).toBe(false);
  });

  it('does not hold what was suspended (rule 4)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.clock.advance(TTL);
    world.clock.suspend(TRUSTED);
    expect(lease.isHeld).toBe(false);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['suspended']);
  });

  it('publishes no success that came after trust had ended (rule 5)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    const gate = new Gate();
    world.threadStore.next('renew', gate.reply);
    world.threadStore.always('renew', hang);
    await world.block(TRUSTED);
    gate.open();
    await settle();
    expect(lease.isHeld).toBe(false);
  });

  it('that finds the key not ours is loss, for who looks before hearing of it too (rule 6)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.steal('k');
    await world.block(THIRD);
    expect(lease.isHeld).toBe(false);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['taken']);
  });

  it('that finds the key not ours is loss at once when the event loop hears of it (rule 6)', async () => {
    const world = await ThreadWorld.started();
    const { signal } = await world.engine.acquire('k');
    await world.steal('k');
    await world.clock.advance(THIRD);
    expect(signal.reason).toMatchObject({ reason: 'taken' });
  });

  it('that gets no answer is helped by the event loop (rule 6)', async () => {
    const world = await ThreadWorld.started();
    world.threadStore.always('renew', hang);
    const lease = await world.engine.acquire('k');
    await world.clock.advance(10 * TTL);
    expect(lease.isHeld).toBe(true);
    expect(world.store.renewals.length).toBeGreaterThan(0);
  });

  it('that nobody answers is loss when trust ends (rule 4)', async () => {
    const world = await ThreadWorld.started();
    world.threadStore.always('renew', hang);
    world.store.always('renew', hang);
    const lease = await world.engine.acquire('k');
    await world.clock.advance(TRUSTED - 1);
    expect(lease.isHeld).toBe(true);
    await world.clock.advance(1);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['expired']);
  });

  it('tells how it goes by the events of the application', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire('k');
    const down = new Error('down');
    world.threadStore.next('renew', fail(down), fail(down), pass, fail(down));
    await world.clock.advance(3 * THIRD);
    expect(world.of('renewal-failed').map(({ failures }) => failures)).toEqual([1, 2, 1]);
    expect(world.of('renewal-failed')[0]!.error).toEqual(down);
    expect(world.of('renewed').length).toBeGreaterThan(0);
  });

  it('survives whatever a store rejects with (rule 12)', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire('k');
    world.threadStore.next(
      'renew',
      fail(() => 'a function'),
      answer('nonsense'),
    );
    await world.clock.advance(2 * THIRD);
    expect(world.of('renewal-failed')).toHaveLength(2);
    expect(world.of('renewed').length).toBeGreaterThan(0);
  });

  it('that dies leaves its leases to the event loop, with a warning', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.clock.advance(TTL);
    world.threadStore.always('renew', hang);
    world.die(new Error('out of memory'));
    expect(world.warnings).toEqual([THREAD_ENDED(new Error('out of memory'))]);
    await world.clock.advance(3 * TTL);
    expect(lease.isHeld).toBe(true);
    // At the pace of one that is alone, from the first.
    expect(world.store.renewals.length).toBeGreaterThanOrEqual(9);
    const other = await world.engine.acquire('other');
    await world.clock.advance(3 * TTL);
    expect([lease.isHeld, other.isHeld]).toEqual([true, true]);
  });

  it('that dies has its leases renewed no later than they would have been (rule 6)', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire('k');
    world.threadStore.always('renew', hang);
    world.die(new Error('killed'));
    await world.clock.advance(THIRD);
    expect(world.store.renewals).toHaveLength(1);
  });

  it('that dies while the event loop is blocked leaves what it earned', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.block(3 * TTL);
    world.threadStore.always('renew', hang);
    world.die(new Error('killed'));
    expect(lease.isHeld).toBe(true);
    await world.wake();
    await world.clock.advance(3 * TTL);
    expect(lease.isHeld).toBe(true);
  });

  it('that cannot start is a warning, and the event loop renews', async () => {
    const world = new ThreadWorld({ cannotStart: new Error('no threads here') });
    const lease = await world.engine.acquire('k');
    await world.clock.advance(3 * TTL);
    expect(lease.isHeld).toBe(true);
    expect(world.warnings).toEqual([THREAD_ENDED(new Error('no threads here'))]);
  });

  it('takes over what was granted before it had started', async () => {
    const world = new ThreadWorld();
    const lease = await world.engine.acquire('k');
    await world.clock.advance(THIRD);
    expect(world.isStarted).toBe(true);
    await world.block(3 * TTL);
    expect(lease.isHeld).toBe(true);
  });

  it('in flight does not turn a release into a loss, nor bring anything back (rule 7)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    const gate = new Gate();
    world.threadStore.next('renew', gate.request);
    await world.clock.advance(THIRD);
    expect(gate.reached).toBe(1);
    expect(await lease.release()).toBe('released');
    gate.open();
    await world.clock.advance(TTL);
    expect(world.of('lost')).toEqual([]);
    expect(await world.isTaken('k')).toBe(false);
  });

  it.each(['reply', 'request'] as const)(
    'in flight at a release says nothing about the lease that has its place next (%s)',
    async (at) => {
      const world = await ThreadWorld.started();
      const lease = await world.engine.acquire('k');
      const gate = new Gate();
      world.threadStore.next('renew', gate[at]);
      await world.clock.advance(THIRD);
      await lease.release();
      // A beat later the thread has let it go.
      await world.clock.advance(1_000);
      const other = await world.engine.acquire('other', { ttl: 2 * TTL });
      const { remaining } = other;
      expect(world.places.size).toBe(1);
      gate.open();
      await settle();
      expect(other.remaining).toBe(remaining);
      expect(other.isHeld).toBe(true);
      await world.block(4 * TTL);
      expect(other.isHeld).toBe(true);
    },
  );

  it('gives no place to another lease before the thread has let go of it', async () => {
    const world = await ThreadWorld.started();
    await (await world.engine.acquire('a')).release();
    await world.engine.acquire('b');
    expect(world.places.size).toBe(2);
  });

  it('of a released lease ends, and so does the beating of the heart', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await world.clock.advance(TTL);
    await lease.release();
    await world.clock.advance(3_000);
    const { length } = world.threadStore.renewals;
    await world.clock.advance(10 * TTL);
    expect(world.threadStore.renewals).toHaveLength(length);
    expect([world.engine.agenda.size, world.clock.timers]).toEqual([0, 0]);
  });

  it('of a lost lease leaves nothing behind', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire('k', { maxHold: TTL });
    await world.clock.advance(TTL + 3_000);
    expect(world.of('lost')).toHaveLength(1);
    expect([world.engine.agenda.size, world.clock.timers]).toEqual([0, 0]);
  });

  it('does not take a lease for gone because the one before it in its place was', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire('k');
    await world.steal('k');
    await world.clock.advance(TTL);
    expect(world.of('lost')).toHaveLength(1);
    const other = await world.engine.acquire('other');
    expect(world.places.size).toBe(1);
    expect(other.isHeld).toBe(true);
  });

  it('has room for more leases than it began with', async () => {
    const world = await ThreadWorld.started();
    const leases = await Promise.all(
      Array.from({ length: 2_500 }, (_, i) => world.engine.acquire(`k${i}`)),
    );
    await world.block(2 * TTL);
    expect(leases.every(({ isHeld }) => isHeld)).toBe(true);
    expect(world.places.size).toBe(2_500);
  });

  it('follows a renewal by hand for another ttl (rule 6)', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await lease.renew(600);
    expect(world.store.renewals).toHaveLength(1);
    await world.block(6_000);
    expect(world.threadStore.renewals.length).toBeGreaterThanOrEqual(29);
    expect(world.threadStore.renewals.at(-1)![0]!.ttl).toBe(600);
    expect(lease.isHeld).toBe(true);
  });

  it('does not shorten what a renewal by hand earned', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k');
    await lease.renew('1m');
    expect(lease.remaining).toBe(50_000);
    world.threadStore.always('renew', hang);
    await world.block(40_000);
    expect(lease.remaining).toBe(10_000);
  });

  it('ends at maxHold', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k', { maxHold: 2 * TTL });
    await world.block(2 * TTL - 1);
    expect(lease.isHeld).toBe(true);
    await world.clock.advance(1);
    expect(lease.isHeld).toBe(false);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['max-hold']);
    const { length } = world.threadStore.renewals;
    await world.clock.advance(TTL);
    expect(world.threadStore.renewals).toHaveLength(length);
  });

  it('does not happen with renew: false', async () => {
    const world = await ThreadWorld.started();
    const lease = await world.engine.acquire('k', { renew: false });
    await world.block(TRUSTED);
    expect(lease.isHeld).toBe(false);
    expect(world.threadStore.renewals).toHaveLength(0);
  });

  it('leaves the other keys of a lease that has lost one to their ttl', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire(['a', 'b']);
    await world.steal('a');
    await world.clock.advance(3 * TTL);
    expect(world.of('lost').map(({ key }) => key)).toEqual(['a', 'b']);
    expect(await world.isTaken('b')).toBe(false);
  });

  it('is what the event loop is measured by: it lags when it comes near the bound', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire('k');
    await world.block(HUNG_AFTER / 4);
    await world.wake();
    expect(world.of('lagging')).toEqual([]);
    await world.block(0.75 * HUNG_AFTER);
    await world.wake();
    expect(world.of('lagging')).toHaveLength(1);
  });

  it('is stopped when the engine is closed, after the releases (rule 11)', async () => {
    const world = await ThreadWorld.started();
    await world.engine.acquire('k');
    const gate = new Gate();
    world.store.next('release', gate.request);
    const closing = world.engine.close(0, 0);
    await world.clock.advance(100);
    expect(world.isTerminated).toBe(false);
    gate.open();
    await closing;
    expect(world.isTerminated).toBe(true);
    expect(await world.isTaken('k')).toBe(false);
    expect(world.warnings).toEqual([]);
  });

  it('lets go of what a shutdown leaves to its ttl (rule 11)', async () => {
    const world = await ThreadWorld.started();
    const running = world.engine.run('k', () => new Promise<void>(() => {}));
    running.catch(() => {});
    await settle();
    const closing = world.engine.close(0, 0);
    await world.clock.advance(0);
    expect(await closing).toEqual(['k']);
    await world.clock.advance(TTL);
    expect(await world.isTaken('k')).toBe(false);
  });

  it('with a store that cannot be made in a thread is an error at start', () => {
    const store = new MemoryLeaseStore();
    const options = { store, namespace: 'test', instance: 'me', ttl: TTL, wait: 0 };
    expect(() => new LeaseEngine({ ...options, renewInThread: { hungAfter: 1_000 } })).toThrow(
      new TypeError(NO_THREAD('memory')),
    );
  });
});
