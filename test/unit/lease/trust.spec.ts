import { describe, expect, it } from '@jest/globals';
import { LeaseUnavailableException } from '../../../lib/exceptions/lease-unavailable.exception.js';
import { Trust } from '../../../lib/lease/trust.js';
import { SLOW_GRANT } from '../../../lib/lease.messages.js';
import { Gate, hang } from '../../support/scripted-store.js';
import { settle, VirtualClock } from '../../support/virtual-clock.js';
import { outcome, TRUSTED, TTL, World } from './world.js';

describe('trust', () => {
  it('lasts for five sixths of the ttl (rule 3)', async () => {
    const { engine } = new World();
    const lease = await engine.acquire('k', { renew: false });
    expect(lease.remaining).toBe(TRUSTED);
  });

  it('is counted from before the request left, however slow its success was (rule 3)', async () => {
    const { engine, store, clock } = new World();
    const gate = new Gate();
    store.next('acquire', gate.reply);
    const asked = engine.acquire('k', { renew: false });
    await clock.advance(1_500);
    gate.open();
    const lease = await asked;
    expect(lease.remaining).toBe(TRUSTED - 1_500);
    await clock.advance(TRUSTED - 1_500);
    expect(lease.isHeld).toBe(false);
  });

  it('is counted from before the request left, though the wall clock was set back meanwhile (rule 3)', async () => {
    const { engine, store, clock } = new World();
    const gate = new Gate();
    store.next('acquire', gate.reply);
    const asked = engine.acquire('k', { renew: false });
    await clock.advance(1_500);
    clock.stepWall(-3_600_000);
    gate.open();
    expect((await asked).remaining).toBe(TRUSTED - 1_500);
  });

  it('of a renewal is counted from before the renewal left (rule 3)', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k', { renew: false });
    const gate = new Gate();
    store.next('renew', gate.reply);
    await clock.advance(1_000);
    const renewing = lease.renew();
    await clock.advance(500);
    gate.open();
    await renewing;
    expect(lease.remaining).toBe(TRUSTED - 500);
  });

  it('refuses a grant that came too late to be trusted, and gives it back (rule 3)', async () => {
    const world = new World();
    const { engine, store, clock } = world;
    const gate = new Gate();
    store.next('acquire', gate.reply);
    const asked = outcome(engine.acquire('k'));
    await settle();
    // The event loop was blocked: the answer is there before any timer could say that it took too long.
    clock.freeze(TRUSTED);
    gate.open();
    await settle();
    expect(asked.error).toBeInstanceOf(LeaseUnavailableException);
    expect((asked.error as Error).cause).toEqual(new Error(SLOW_GRANT(TTL)));
    expect(await world.isTaken('k')).toBe(false);
  });

  it('refuses a grant over which the machine was suspended (rules 3 and 4)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.reply);
    const asked = outcome(world.engine.acquire('k'));
    await settle();
    world.clock.suspend(TRUSTED);
    gate.open();
    await settle();
    expect(asked.error).toBeInstanceOf(LeaseUnavailableException);
  });

  it('is not shortened by an old renewal that succeeds after a newer one (rule 3)', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k', { renew: false });
    const gate = new Gate();
    store.next('renew', gate.reply);
    const old = outcome(lease.renew());
    await clock.advance(1_000);
    expect(old.error).toBeInstanceOf(LeaseUnavailableException);
    await lease.renew();
    const { remaining } = lease;
    gate.open();
    await settle();
    expect(lease.remaining).toBe(remaining);
  });

  it('is not shortened by a renewal for a shorter ttl', async () => {
    const { engine } = new World();
    const lease = await engine.acquire('k', { renew: false });
    await lease.renew(60);
    expect(lease.remaining).toBe(TRUSTED);
  });

  it('grows with a renewal for a longer ttl', async () => {
    const { engine } = new World();
    const lease = await engine.acquire('k', { renew: false });
    await lease.renew('1m');
    expect(lease.remaining).toBe(50_000);
    expect(lease.ttl).toBe(60_000);
  });

  it('never ends later than the store frees the key (rule 3)', async () => {
    const { engine, store, clock, memory } = new World();
    const gate = new Gate();
    store.next('acquire', gate.request);
    const asked = engine.acquire('k', { renew: false });
    await clock.advance(900);
    gate.open();
    const lease = await asked;
    const record = await memory.inspect('test/k');
    expect(lease.remaining).toBeLessThan(record!.freeInMs);
  });

  it('of a claim whose reply was lost is counted from the request that was answered (rule 3)', async () => {
    const { engine, store, clock } = new World({}, { push: false });
    store.next('acquire', hang);
    const asked = engine.acquire('k', { wait: '10s', renew: false });
    await clock.advance(2_100);
    const lease = await asked;
    // 2000 ms without an answer, a pause of 30 ms, and then the request that won.
    expect(lease.remaining).toBe(TRUSTED - 70);
  });

  it('takes the clock that ran further: neither alone can prolong it (rule 4)', () => {
    const clock = new VirtualClock();
    const trust = new Trust(clock, clock.now(), clock.wall(), TTL);
    clock.stepWall(-3_600_000);
    expect(trust.remaining).toBe(TRUSTED);
    clock.freeze(TRUSTED);
    expect(trust.ended).toBe('expired');
  });
});
