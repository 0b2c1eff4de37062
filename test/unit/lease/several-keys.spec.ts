import { describe, expect, it } from '@jest/globals';
import { LeaseHeldException } from '../../../lib/exceptions/lease-held.exception.js';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import { LeaseUnavailableException } from '../../../lib/exceptions/lease-unavailable.exception.js';
import { EMPTY_KEYS } from '../../../lib/lease.messages.js';
import { fail } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { outcome, TRUSTED, World } from './world.js';

describe('several keys', () => {
  it('are taken in one order, whatever order they were named in, each once (rule 1)', async () => {
    const { engine, store } = new World();
    const lease = await engine.acquire(['c', 'a', 'b', 'a']);
    expect(store.claims.map(({ key }) => key)).toEqual(['test/a', 'test/b', 'test/c']);
    expect(lease.keys).toEqual(['a', 'b', 'c']);
    expect(lease.key).toBe('a + b + c');
  });

  it('never block each other for ever, named in opposite orders (rule 10)', async () => {
    const { engine, clock } = new World();
    const keys = ['a', 'b', 'c'];
    const runs = Array.from({ length: 12 }, (_, i) =>
      engine.run(i % 2 ? keys : keys.toReversed(), () => i, { wait: '1h' }),
    );
    const all = outcome(Promise.all(runs));
    await clock.advance(60_000);
    expect(all.state).toBe('fulfilled');
  });

  it('have a fence each, and the highest as the fence of all (rule 8)', async () => {
    const { engine } = new World();
    const lease = await engine.acquire(['a', 'b']);
    const [a, b] = [lease.fenceOf('a')!, lease.fenceOf('b')!];
    expect(lease.fence).toBe(Math.max(a, b));
    expect(a).not.toBe(b);
    expect(lease.fenceOf('c')).toBeUndefined();
  });

  it('are all or nothing: one that is held gives the others back', async () => {
    const world = new World();
    await world.rival().acquire('b');
    const asked = world.engine.acquire(['a', 'b', 'c']);
    await expect(asked).rejects.toBeInstanceOf(LeaseHeldException);
    await expect(asked).rejects.toMatchObject({ key: 'b' });
    expect([await world.isTaken('a'), await world.isTaken('c')]).toEqual([false, false]);
    expect(world.engine.agenda.size).toBe(0);
    expect(world.engine.leases.size).toBe(0);
  });

  it('given back because one was held are free at once, `minHold` or not: nothing was done', async () => {
    const world = new World();
    await world.rival().acquire('b');
    expect(await world.engine.tryAcquire(['a', 'b'], { minHold: '1h' })).toBeNull();
    expect(await world.isTaken('a')).toBe(false);
  });

  it('are all or nothing: one without an answer gives the others back', async () => {
    const world = new World();
    world.store.next('acquire', (call) => call(), fail(new Error('down')));
    await expect(world.engine.acquire(['a', 'b'])).rejects.toBeInstanceOf(
      LeaseUnavailableException,
    );
    await settle();
    expect(await world.isTaken('a')).toBe(false);
  });

  it('are all or nothing: an abort while waiting for one gives the others back (rule 10)', async () => {
    const world = new World();
    await world.rival().acquire('b');
    const abort = new AbortController();
    const asked = outcome(world.engine.acquire(['a', 'b'], { wait: '1m', signal: abort.signal }));
    await settle();
    expect(await world.isTaken('a')).toBe(true);
    abort.abort();
    await settle();
    expect(asked.error).toBe(abort.signal.reason);
    expect(await world.isTaken('a')).toBe(false);
  });

  it('share one wait', async () => {
    const world = new World();
    const a = await world.rival().acquire('a');
    await world.rival().acquire('b');
    const asked = outcome(world.engine.acquire(['a', 'b'], { wait: 1_000 }));
    await world.clock.advance(900);
    await a.release();
    await world.clock.advance(100);
    expect(asked.error).toMatchObject({ code: 'LEASE_HELD', key: 'b' });
  });

  it('of which one was lost while another was waited for are no lease (rule 4)', async () => {
    const world = new World();
    const b = await world.rival().acquire('b');
    const asked = outcome(world.engine.acquire(['a', 'b'], { wait: '1m', renew: false }));
    await world.clock.advance(TRUSTED);
    await b.release();
    await settle();
    expect(asked.error).toBeInstanceOf(LeaseLostException);
    await settle();
    expect([await world.isTaken('a'), await world.isTaken('b')]).toEqual([false, false]);
  });

  it('are lost when one of them is (rule 5)', async () => {
    const world = new World();
    const lease = await world.engine.acquire(['a', 'b', 'c']);
    const { signal } = lease;
    const losses: string[] = [];
    lease.lost$.subscribe(({ key }) => losses.push(key));
    await world.steal('b');
    await world.clock.advance(2_000);
    expect(lease.isHeld).toBe(false);
    expect(lease.remaining).toBe(0);
    expect(signal.reason).toMatchObject({ key: 'b', reason: 'taken' });
    expect(lease.signal).toBe(signal);
    expect(losses).toEqual(['b']);
    expect(() => lease.assertHeld()).toThrow('"b"');
    expect(await lease.release()).toBe('lost');
    expect([await world.isTaken('a'), await world.isTaken('c')]).toEqual([false, false]);
  });

  it('have an aborted signal for those who ask for it after the loss (rule 5)', async () => {
    const world = new World();
    const lease = await world.engine.acquire(['a', 'b']);
    await world.steal('b');
    await world.clock.advance(2_000);
    expect(lease.signal.aborted).toBe(true);
  });

  it('are lost once, though all of them are (rule 5)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire(['a', 'b'], { renew: false });
    const losses: string[] = [];
    lease.lost$.subscribe(({ key }) => losses.push(key));
    await clock.advance(TRUSTED);
    expect(losses).toHaveLength(1);
    expect(engine.leases.size).toBe(0);
  });

  it('are renewed together, and by hand', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire(['a', 'b']);
    await clock.advance(2_000);
    expect(store.renewals.map((holds) => holds.length)).toEqual([2]);
    await clock.advance(500);
    await lease.renew('1m');
    expect(lease.remaining).toBe(50_000);
    expect(lease.ttl).toBe(60_000);
  });

  it('are released together; the worst outcome is the outcome (rule 7)', async () => {
    const world = new World();
    const lease = await world.engine.acquire(['a', 'b']);
    world.store.next('release', fail(new Error('1')), (call) => call(), fail(new Error('2')));
    expect(await lease.release()).toBe('unknown');
    expect(
      world
        .of('released')
        .map((event) => event.outcome)
        .toSorted(),
    ).toEqual(['released', 'unknown']);
  });

  it('must be at least one', async () => {
    await expect(new World().engine.acquire([])).rejects.toThrow(new RangeError(EMPTY_KEYS()));
  });

  it('may be one', async () => {
    const lease = await new World().engine.acquire(['a']);
    expect(lease.key).toBe('a');
  });
});

describe('a signal that is aborted between two keys', () => {
  it.each([undefined, '1m'] as const)('ends it, wait: %s (rule 10)', async (wait) => {
    const world = new World();
    const abort = new AbortController();
    const enough = new Error('enough');
    world.engine.events.all.subscribe(({ type, key }) => {
      if (type === 'acquired' && key === 'a') abort.abort(enough);
    });
    const options = { signal: abort.signal, ...(wait === undefined ? {} : { wait }) };
    await expect(world.engine.acquire(['a', 'b'], options)).rejects.toBe(enough);
    await settle();
    expect([await world.isTaken('a'), await world.isTaken('b')]).toEqual([false, false]);
  });
});
