import { describe, expect, it } from '@jest/globals';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import type { LeaseLostEvent } from '../../../lib/lease/events.js';
import { LeaseEngine } from '../../../lib/lease/lease-engine.js';
import { fail, Gate, hang } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { swallowUncaught } from './uncaught.js';
import { deferred, outcome, TRUSTED, TTL, World } from './world.js';

describe('loss', () => {
  it('comes by a timer while a renewal hangs (rule 4)', async () => {
    const { engine, store, clock } = new World();
    store.always('renew', hang);
    const lease = await engine.acquire('k');
    const { signal } = lease;
    await clock.advance(TRUSTED - 1);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(LeaseLostException);
    expect(signal.reason).toMatchObject({ key: 'k', reason: 'expired', code: 'LEASE_LOST' });
  });

  it('comes at the latest five sixths of a ttl after the last success (rule 4)', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k');
    const { signal } = lease;
    await clock.advance(2_000);
    expect(store.renewals).toHaveLength(1);
    store.always('renew', fail(new Error('down')));
    await clock.advance(TRUSTED - 1);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
  });

  it.each([
    ['isHeld', (lease: { isHeld: boolean }) => lease.isHeld === false],
    ['remaining', (lease: { remaining: number }) => lease.remaining === 0],
    ['toJSON', (lease: object) => JSON.stringify(lease).includes('"isHeld":false')],
  ])(
    'is seen by %s before any timer runs, after a blocked event loop (rule 4)',
    async (_, sees) => {
      const { engine, clock } = new World();
      const lease = await engine.acquire('k');
      const { signal } = lease;
      clock.freeze(TRUSTED);
      expect(signal.aborted).toBe(false);
      expect(sees(lease)).toBe(true);
      expect(signal.aborted).toBe(true);
    },
  );

  it('is thrown by assertHeld before any timer runs, after a blocked event loop (rule 4)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire('k');
    clock.freeze(TRUSTED);
    expect(() => lease.assertHeld()).toThrow(LeaseLostException);
  });

  it('is seen by re-entry before any timer runs, after a blocked event loop (rule 4)', async () => {
    const { engine, clock, store } = new World();
    const run = engine.run('k', async () => {
      clock.freeze(TRUSTED);
      await engine.run('k', () => 'acted');
    });
    await expect(run).rejects.toBeInstanceOf(LeaseLostException);
    expect(store.claims).toHaveLength(1);
  });

  it('is seen by renew before any timer runs, and nothing is sent (rule 4)', async () => {
    const { engine, clock, store } = new World();
    const lease = await engine.acquire('k');
    clock.freeze(TRUSTED);
    await expect(lease.renew()).rejects.toBeInstanceOf(LeaseLostException);
    expect(store.renewals).toHaveLength(0);
  });

  it('is found in the answer of a renewal that was waiting while the process slept (rule 5)', async () => {
    const { engine, clock, store } = new World();
    const gate = new Gate();
    store.next('renew', gate.reply);
    const lease = await engine.acquire('k');
    await clock.advance(2_000);
    clock.freeze(TRUSTED - 2_000);
    gate.open();
    await settle();
    expect(lease.isHeld).toBe(false);
  });

  it('comes when the wall clock ran further than the monotonic one: suspended (rule 4)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire('k');
    const { signal } = lease;
    clock.suspend(TRUSTED);
    expect(lease.isHeld).toBe(false);
    expect(signal.reason).toMatchObject({ reason: 'suspended' });
  });

  it('of a suspended machine is found within a margin of waking, though nobody asks (rule 4)', async () => {
    const { engine, clock } = new World();
    const { signal } = await engine.acquire('k', { renew: false });
    await clock.advance(500);
    clock.suspend(3_600_000);
    await clock.advance(TTL / 6);
    expect(signal.reason).toMatchObject({ reason: 'suspended' });
  });

  it('does not come from a wall clock that was set back (rule 4)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire('k');
    clock.stepWall(-86_400_000);
    await clock.advance(10 * TTL);
    expect(lease.isHeld).toBe(true);
  });

  it('tells in order: marked, signal, events, lost$, then the release (rule 5)', async () => {
    const { engine, store, clock } = new World();
    store.always('renew', hang);
    const lease = await engine.acquire('k');
    const told: string[] = [];
    const tell = (what: string): void => void told.push(`${what}, held: ${lease.isHeld}`);
    lease.signal.addEventListener('abort', () => tell('signal'));
    engine.events.all.subscribe(({ type }) => type === 'lost' && tell('events$'));
    engine.events.lost.subscribe(() => tell('engine lost$'));
    lease.lost$.subscribe(() => tell('lost$'));
    store.always('release', async (pass) => {
      tell('release');
      return pass();
    });
    await clock.advance(TRUSTED);
    expect(told).toEqual([
      'signal, held: false',
      'events$, held: false',
      'engine lost$, held: false',
      'lost$, held: false',
      'release, held: false',
    ]);
  });

  it('agrees in signal, event and lost$ (rule 5)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const losses: LeaseLostEvent[] = [];
    world.engine.events.lost.subscribe((loss) => losses.push(loss));
    lease.lost$.subscribe((loss) => losses.push(loss));
    const { signal } = lease;
    await world.steal('k');
    await world.clock.advance(2_000);
    expect(losses).toHaveLength(2);
    for (const loss of [...losses, ...world.of('lost')]) {
      expect(loss).toEqual({
        type: 'lost',
        key: 'k',
        fence: lease.fence,
        reason: 'taken',
        heldMs: 2_000,
        instance: 'me',
        at: new Date(world.clock.wall()),
      });
    }
    expect(signal.reason).toMatchObject({ reason: 'taken', key: 'k' });
  });

  it('is told once, whatever comes after it (rule 5)', async () => {
    const world = new World();
    world.store.always('renew', hang);
    const lease = await world.engine.acquire('k');
    await world.clock.advance(TRUSTED);
    await world.clock.advance(10 * TTL);
    expect(lease.isHeld).toBe(false);
    await lease.release();
    expect(world.of('lost')).toHaveLength(1);
  });

  it('gives back what may be left of it, but not what was taken by others (rule 5)', async () => {
    const world = new World();
    const expired = await world.engine.acquire('expired', { renew: false });
    await world.engine.acquire('taken');
    await world.steal('taken');
    await world.clock.advance(TRUSTED);
    expect(expired.isHeld).toBe(false);
    expect(world.store.releases.map(({ hold }) => hold.key)).toEqual(['test/expired']);
    expect(await world.isTaken('expired')).toBe(false);
  });

  it('is final: a renewal that succeeds late brings nothing back (rule 5)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.always('renew', gate.reply);
    world.store.always('release', hang);
    const lease = await world.engine.acquire('k');
    await world.clock.advance(TRUSTED);
    gate.open();
    await world.clock.advance(TTL);
    expect(lease.isHeld).toBe(false);
    expect(lease.remaining).toBe(0);
    expect(world.of('renewed')).toHaveLength(0);
    expect(world.of('acquired')).toHaveLength(1);
  });

  it('never makes a renewal create the key again (rule 5)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('renew', gate.request);
    await world.engine.acquire('k');
    await world.clock.advance(2_000);
    await world.steal('k');
    gate.open();
    await settle();
    expect(await world.isTaken('k')).toBe(false);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['taken']);
  });

  it('may be answered with a release inside the abort handler (rule 5)', async () => {
    const world = new World();
    world.store.always('renew', hang);
    const lease = await world.engine.acquire('k');
    const released = deferred<string>();
    lease.signal.addEventListener('abort', () => void lease.release().then(released.resolve));
    await world.clock.advance(TRUSTED);
    expect(await released.promise).toBe('lost');
    expect(world.of('lost')).toHaveLength(1);
    expect(world.engine.leases.size).toBe(0);
  });

  it('found by a release may be answered with a release: it is the same one (rule 7)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire('k');
    let inner: Promise<string> | undefined;
    lease.signal.addEventListener('abort', () => (inner = lease.release()));
    clock.freeze(TRUSTED);
    const outer = lease.release();
    expect(inner).toBe(outer);
    expect(await outer).toBe('lost');
  });

  it('reaches those who subscribe to lost$ inside the abort handler (rule 5)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire('k', { renew: false });
    const reasons: string[] = [];
    lease.signal.addEventListener('abort', () => {
      lease.lost$.subscribe(({ reason }) => reasons.push(reason));
    });
    await clock.advance(TRUSTED);
    expect(reasons).toEqual(['expired']);
  });

  it('reaches those who ask for the signal or lost$ only afterwards (rule 5)', async () => {
    const { engine, clock } = new World();
    const lease = await engine.acquire('k', { renew: false });
    await clock.advance(TRUSTED);
    expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
    const reasons: string[] = [];
    let isComplete = false;
    lease.lost$.subscribe({
      next: ({ reason }) => reasons.push(reason),
      complete: () => (isComplete = true),
    });
    expect({ reasons, isComplete }).toEqual({ reasons: ['expired'], isComplete: true });
  });

  it('is told to all, and the key is given back, though a listener throws (rule 5)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { renew: false });
    const told: string[] = [];
    const thrown = await swallowUncaught(async () => {
      lease.signal.addEventListener('abort', () => {
        throw new Error('in a listener of the signal');
      });
      world.engine.events.lost.subscribe(() => {
        throw new Error('in a subscriber');
      });
      lease.signal.addEventListener('abort', () => told.push('signal'));
      world.engine.events.lost.subscribe(() => told.push('event'));
      lease.lost$.subscribe(() => told.push('lost$'));
      await world.clock.advance(TRUSTED);
    });
    expect(thrown).toHaveLength(2);
    expect(told).toEqual(['signal', 'event', 'lost$']);
    expect(await world.isTaken('k')).toBe(false);
    expect(world.engine.agenda.size).toBe(0);
  });

  it('is told outside of every lease: a listener enters nobody’s (rule 1)', async () => {
    const { engine, clock, store } = new World();
    const other = await engine.acquire('other', { renew: false });
    const seen: unknown[] = [];
    const tried: Promise<unknown>[] = [];
    const look = (): void => {
      seen.push(engine.scope.current);
      tried.push(engine.tryAcquire('mine'));
    };
    other.signal.addEventListener('abort', look);
    other.lost$.subscribe(look);
    engine.events.lost.subscribe(look);
    const work = deferred();
    const run = engine.run(
      'mine',
      async () => {
        // A timer that is set here would carry this context to whatever it is used for.
        clock.freeze(TRUSTED);
        expect(other.isHeld).toBe(false);
        await work.promise;
      },
      { ttl: '1h' },
    );
    await settle();
    expect(seen).toEqual([undefined, undefined, undefined]);
    expect(await Promise.all(tried)).toEqual([null, null, null]);
    expect(store.claims.filter(({ key }) => key === 'test/mine')).toHaveLength(4);
    work.resolve();
    await run;
  });

  it('by a timer that was set inside a lease is told outside of it (rule 1)', async () => {
    const { engine, clock } = new World();
    const seen: unknown[] = [];
    engine.events.all.subscribe(() => seen.push(engine.scope.current));
    const work = deferred();
    const run = outcome(
      engine.run('outer', async () => {
        await engine.acquire('inner', { renew: false, ttl: 600 });
        await work.promise;
      }),
    );
    await clock.advance(2_100);
    work.resolve();
    await settle();
    expect(run.state).toBe('fulfilled');
    expect(seen.length).toBeGreaterThanOrEqual(4);
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });

  it('of a lease that nobody ever gives back leaves nothing in the process', async () => {
    const { engine, clock, memory } = new World();
    for (let i = 0; i < 100; i++) await engine.acquire(`k${i}`, { renew: false });
    await clock.advance(TRUSTED);
    expect([engine.leases.size, engine.agenda.size, memory.size]).toEqual([0, 0, 0]);
  });

  it('leaves the key to the next, under a higher fence (rules 4 and 8)', async () => {
    const world = new World();
    world.store.always('renew', hang);
    world.store.always('release', hang);
    const stale = await world.engine.acquire('k');
    const waiting = world.rival().acquire('k', { wait: '1m' });
    await world.clock.advance(TTL + 100);
    const next = await waiting;
    expect(next.fence).toBeGreaterThan(stale.fence);
    expect([stale.isHeld, next.isHeld]).toEqual([false, true]);
  });
});

describe('a store that finds a hold gone without being asked', () => {
  it('ends the lease at once, and no other (rules 5 and 6)', async () => {
    const world = new World();
    let tell!: (token: string) => void;
    let stopped = 0;
    const store = Object.assign(world.store, {
      watchLoss: (onGone: (token: string) => void) => {
        tell = onGone;
        return () => void stopped++;
      },
    });
    const { clock } = world;
    const engine = new LeaseEngine({
      store,
      namespace: 'n',
      instance: 'i',
      ttl: TTL,
      wait: 0,
      clock,
    });
    const [gone, kept] = [await engine.acquire('gone'), await engine.acquire('kept')];
    const lost: unknown[] = [];
    engine.events.lost.subscribe(({ key, reason }) => lost.push([key, reason]));
    tell(world.store.claims.find(({ key }) => key === 'n/gone')!.token);
    tell('of nobody here');
    expect([gone.isHeld, kept.isHeld]).toEqual([false, true]);
    expect(gone.signal.aborted).toBe(true);
    expect(lost).toEqual([['gone', 'taken']]);
    await engine.close(0, 0);
    expect(stopped).toBe(1);
  });
});
