import { describe, expect, it } from '@jest/globals';
import { LeaseHeldException } from '../../../lib/exceptions/lease-held.exception.js';
import { LeaseUnavailableException } from '../../../lib/exceptions/lease-unavailable.exception.js';
import { NO_ANSWER, NO_TELLING } from '../../../lib/lease.messages.js';
import {
  answer,
  fail,
  failAfter,
  Gate,
  hang,
  loseReply,
  throwNow,
} from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { outcome, PATIENCE, TTL, World } from './world.js';

describe('a claim', () => {
  it('is one of a hundred that race: one wins (rule 1)', async () => {
    const world = new World();
    const engines = Array.from({ length: 4 }, () => world.rival());
    const racing = Array.from({ length: 100 }, (_, i) => engines[i % 4]!.tryAcquire('k'));
    const leases = (await Promise.all(racing)).filter((lease) => lease !== null);
    expect(leases).toHaveLength(1);
  });

  it('whose reply was lost is sent again with the same token, and is one hold (rule 2)', async () => {
    const { engine, store, clock, memory } = new World();
    store.next('acquire', loseReply, failAfter(new Error('reset')));
    const asked = engine.acquire('k', { wait: '20s' });
    await clock.advance(PATIENCE + 500);
    const lease = await asked;
    expect(store.claims).toHaveLength(3);
    expect(new Set(store.claims.map(({ token }) => token)).size).toBe(1);
    const record = await memory.inspect('test/k');
    expect(record!.holders.map(({ fence }) => fence)).toEqual([lease.fence]);
  });

  it('has a token of its own for every acquisition (rule 2)', async () => {
    const { engine, store } = new World();
    await (await engine.acquire('k')).release();
    await (await engine.acquire('k')).release();
    expect(store.claims[0]!.token).not.toBe(store.claims[1]!.token);
  });

  it('tells the store how long its answer is waited for (rule 2)', async () => {
    const { engine, store } = new World();
    await engine.acquire('k');
    await engine.acquire('long', { ttl: '1h' });
    expect(store.claims.map(({ patience }) => patience)).toEqual([PATIENCE, 5_000]);
  });

  it('without an answer in time is refused as unavailable, and given back (rules 2 and 9)', async () => {
    const world = new World();
    world.store.next('acquire', loseReply);
    const asked = outcome(world.engine.acquire('k'));
    await world.clock.advance(PATIENCE - 1);
    expect(asked.state).toBe('pending');
    await world.clock.advance(1);
    expect(asked.error).toBeInstanceOf(LeaseUnavailableException);
    expect(((asked.error as Error).cause as Error).message).toBe(NO_ANSWER(PATIENCE));
    expect(await world.isTaken('k')).toBe(false);
  });

  it('that is executed after its time is given back when its late grant arrives (rule 2)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.request);
    const asked = outcome(world.engine.acquire('k'));
    await world.clock.advance(PATIENCE);
    expect(asked.state).toBe('rejected');
    gate.open();
    await settle();
    expect(await world.isTaken('k')).toBe(false);
  });

  it('abandoned by an abort is given back when its late grant arrives (rule 2)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.reply);
    const abort = new AbortController();
    const asked = outcome(world.engine.acquire('k', { wait: '1m', signal: abort.signal }));
    await settle();
    const reason = new Error('not needed any more');
    abort.abort(reason);
    await settle();
    expect(asked.error).toBe(reason);
    expect(await world.isTaken('k')).toBe(true);
    gate.open();
    await settle();
    expect(await world.isTaken('k')).toBe(false);
  });

  it('abandoned by an abort is given back even when its answer never comes (rule 2)', async () => {
    const world = new World();
    world.store.next('acquire', loseReply);
    const abort = new AbortController();
    void outcome(world.engine.acquire('k', { wait: '1m', signal: abort.signal }));
    await settle();
    abort.abort();
    await world.clock.advance(PATIENCE);
    expect(await world.isTaken('k')).toBe(false);
  });

  it('abandoned by an abort is given back even without a wait (rule 2)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.reply);
    const abort = new AbortController();
    const asked = outcome(world.engine.acquire('k', { signal: abort.signal }));
    await settle();
    abort.abort();
    await settle();
    expect(asked.error).toBe(abort.signal.reason);
    gate.open();
    await settle();
    expect(await world.isTaken('k')).toBe(false);
  });

  it('granted in the very moment of its abort has no holder that nobody knows of (rule 2)', async () => {
    // Where in the chain of microtasks the abort falls is not ours to know: all places, one by one.
    for (let delay = 0; delay < 12; delay++) {
      const world = new World();
      const gate = new Gate();
      world.store.next('acquire', gate.reply);
      const abort = new AbortController();
      const asked = outcome(world.engine.acquire('k', { wait: '1m', signal: abort.signal }));
      await settle();
      gate.open();
      for (let i = 0; i < delay; i++) await Promise.resolve();
      abort.abort();
      await settle();
      const isOwned = asked.state === 'fulfilled';
      expect({ delay, isTaken: await world.isTaken('k') }).toEqual({ delay, isTaken: isOwned });
      expect(world.engine.agenda.size).toBe(isOwned ? 1 : 0);
    }
  });

  it('abandoned at its deadline is given back when its late grant arrives (rule 2)', async () => {
    const world = new World();
    const gate = new Gate();
    const rival = await world.rival().acquire('k', { renew: false });
    world.store.next('acquire', (pass) => pass(), gate.request);
    const asked = outcome(world.engine.acquire('k', { wait: 100 }));
    await world.clock.advance(100);
    expect(asked.error).toBeInstanceOf(LeaseHeldException);
    await rival.release();
    gate.open();
    await settle();
    expect(world.store.claims).toHaveLength(2);
    expect(await world.isTaken('k')).toBe(false);
  });

  it('granted late, after the lease was won and released, leaves no ghost (rule 2)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.request);
    const asked = world.engine.acquire('k', { wait: '1m' });
    await world.clock.advance(PATIENCE + 100);
    const lease = await asked;
    await lease.release();
    gate.open();
    await settle();
    expect(await world.isTaken('k')).toBe(false);
  });

  it('answered late, while the lease it won is held, takes nothing from it (rule 2)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.reply);
    const asked = world.engine.acquire('k', { wait: '1m' });
    await world.clock.advance(PATIENCE + 100);
    const lease = await asked;
    gate.open();
    await settle();
    expect(world.store.releases).toHaveLength(0);
    expect(lease.isHeld).toBe(true);
    expect(await world.isTaken('k')).toBe(true);
  });

  it('answered late, while the lease it won is being released, does not overtake that release (rule 2)', async () => {
    const world = new World();
    const late = new Gate();
    world.store.next('acquire', late.reply);
    const run = world.engine.run('k', () => 'done', { wait: '1m', once: 'job' });
    const release = new Gate();
    world.store.next('release', release.request);
    await world.clock.advance(PATIENCE + 100);
    late.open();
    await settle();
    release.open();
    await run;
    expect(world.of('released').map((event) => event.outcome)).toEqual(['released']);
    expect(await world.engine.tryAcquire('k', { once: 'job' })).toBeNull();
  });

  it.each([
    ['a rejection', fail(new Error('READONLY'))],
    ['a synchronous throw', throwNow(new Error('not connected'))],
    ['nothing', answer(undefined)],
    ['null', answer(null)],
    ['a word', answer('OK')],
    ['a grant without a fence', answer({ granted: true })],
    ['a grant with half a fence', answer({ granted: true, fence: 1.5 })],
    ['a grant with no positive fence', answer({ granted: true, fence: 0 })],
    ['a fence as a string', answer({ granted: true, fence: '7' })],
    ['a refusal without a reason', answer({ granted: false })],
    ['a refusal for an unknown reason', answer({ granted: false, reason: 'busy' })],
    ['a refusal as unavailable', answer({ granted: false, reason: 'unavailable' })],
  ])(
    'answered with %s is unavailable, never held and never granted (rule 9)',
    async (_, script) => {
      const { engine, store } = new World();
      store.always('acquire', script);
      await expect(engine.acquire('k')).rejects.toBeInstanceOf(LeaseUnavailableException);
      await expect(engine.tryAcquire('k')).rejects.toBeInstanceOf(LeaseUnavailableException);
      expect(engine.leases.size).toBe(0);
    },
  );

  it('answered with nonsense says what the answer was (rule 9)', async () => {
    const { engine, store } = new World();
    store.next('acquire', answer('OK'));
    await expect(engine.acquire('k')).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
      key: 'k',
      cause: new Error(NO_TELLING('scripted', 'OK')),
    });
  });

  it('in doubt is given back, for the store may have granted it (rule 2)', async () => {
    const { engine, store } = new World();
    store.next('acquire', failAfter(new Error('reset')));
    await expect(engine.acquire('k')).rejects.toBeInstanceOf(LeaseUnavailableException);
    expect(store.releases.map(({ hold }) => hold.token)).toEqual([store.claims[0]!.token]);
    await settle();
    expect(await engine.tryAcquire('k')).not.toBeNull();
  });

  it('is given back in the background: a store that is gone delays no answer (rule 12)', async () => {
    const { engine, store, clock } = new World();
    store.always('acquire', fail(new Error('gone')));
    store.always('release', hang);
    await expect(engine.acquire('k')).rejects.toBeInstanceOf(LeaseUnavailableException);
    await clock.advance(PATIENCE);
    expect(engine.agenda.size).toBe(0);
  });
});

describe('a refusal', () => {
  it('as held says for how long (rule 9)', async () => {
    const world = new World();
    await world.rival().acquire('k', { renew: false });
    await world.clock.advance(1_000);
    await expect(world.engine.acquire('k')).rejects.toMatchObject({
      code: 'LEASE_HELD',
      key: 'k',
      retryAfterMs: TTL - 1_000,
    });
  });

  it('as held is null for tryAcquire (rule 9)', async () => {
    const world = new World();
    await world.rival().acquire('k');
    expect(await world.engine.tryAcquire('k')).toBeNull();
  });

  it('as held without a time has none (rule 9)', async () => {
    const { engine, store } = new World();
    store.next('acquire', answer({ granted: false, reason: 'held' }));
    await expect(engine.acquire('k')).rejects.toMatchObject({
      code: 'LEASE_HELD',
      retryAfterMs: undefined,
    });
  });

  it('spends no fence (rule 8)', async () => {
    const world = new World();
    const first = await world.rival().acquire('k');
    for (let i = 0; i < 10; i++) await world.engine.tryAcquire('k');
    await first.release();
    const second = await world.engine.acquire('k');
    expect(second.fence).toBe(first.fence + 1);
  });

  it('is seen as an event with its reason (rule 9)', async () => {
    const world = new World();
    await world.rival().acquire('k', { renew: false });
    const gone = new Error('gone');
    await world.engine.tryAcquire('k');
    world.store.next('acquire', fail(gone));
    await world.engine.tryAcquire('k').catch(() => {});
    expect(world.of('refused')).toEqual([
      expect.objectContaining({ key: 'k', reason: 'held', retryAfterMs: TTL }),
      expect.objectContaining({ key: 'k', reason: 'unavailable', error: gone }),
    ]);
  });
});
