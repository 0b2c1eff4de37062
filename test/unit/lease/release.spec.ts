import { describe, expect, it } from '@jest/globals';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
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
import { outcome, PATIENCE, THIRD, TRUSTED, TTL, World } from './world.js';

describe('release', () => {
  it('frees the key and says so (rule 7)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    expect(await lease.release()).toBe('released');
    expect(await world.isTaken('k')).toBe(false);
    expect(world.of('released')).toEqual([
      expect.objectContaining({ key: 'k', fence: lease.fence, outcome: 'released', heldMs: 0 }),
    ]);
    expect(world.engine.agenda.size).toBe(0);
  });

  it('is one release, however often it is called (rule 7)', async () => {
    const { engine, store } = new World();
    const lease = await engine.acquire('k');
    const first = lease.release();
    expect(lease.release()).toBe(first);
    await first;
    expect(lease.release()).toBe(first);
    await lease[Symbol.asyncDispose]();
    expect(store.releases).toHaveLength(1);
  });

  it('happens at the end of an `await using`', async () => {
    const world = new World();
    {
      await using lease = await world.engine.acquire('k');
      expect(lease.isHeld).toBe(true);
    }
    expect(await world.isTaken('k')).toBe(false);
  });

  it('ends the right to act before it is answered (rule 7)', async () => {
    const { engine, store } = new World();
    const gate = new Gate();
    store.next('release', gate.request);
    const lease = await engine.acquire('k');
    const releasing = lease.release();
    expect(lease.isHeld).toBe(false);
    expect(lease.remaining).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LeaseLostException);
    gate.open();
    await releasing;
  });

  it('stops renewal (rule 7)', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k');
    await lease.release();
    await clock.advance(10 * TTL);
    expect(store.renewals).toHaveLength(0);
  });

  it('lets a renewal in flight end first (rule 7)', async () => {
    const { engine, store, clock } = new World();
    const gate = new Gate();
    store.next('renew', gate.reply);
    const lease = await engine.acquire('k');
    await clock.advance(THIRD);
    const releasing = outcome(lease.release());
    await settle();
    expect(store.releases).toHaveLength(0);
    gate.open();
    await settle();
    expect(releasing.value).toBe('released');
    await clock.advance(TTL);
    expect(store.renewals).toHaveLength(1);
  });

  it('lets every renewal that was asked for end first (rule 7)', async () => {
    const { engine, store, clock } = new World();
    const gate = new Gate();
    const lease = await engine.acquire('k');
    store.next('renew', gate.reply);
    const renewals = [outcome(lease.renew()), outcome(lease.renew())];
    await settle();
    const releasing = outcome(lease.release());
    await settle();
    expect(releasing.state).toBe('pending');
    gate.open();
    await settle();
    expect(releasing.value).toBe('released');
    // The second had not been sent, and is not sent for a lease that is given back.
    expect(renewals.map(({ state }) => state)).toEqual(['rejected', 'rejected']);
    await clock.advance(TTL);
    expect(store.renewals).toHaveLength(1);
  });

  it('does not wait for a renewal that hangs longer than that is waited for (rule 7)', async () => {
    const { engine, store, clock } = new World();
    store.next('renew', hang);
    const lease = await engine.acquire('k');
    await clock.advance(THIRD);
    const releasing = outcome(lease.release());
    await clock.advance(TTL / 6);
    expect(releasing.value).toBe('released');
  });

  it('is "lost", and no event of a loss, when a renewal in flight finds the key taken (rule 7)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('renew', gate.reply);
    const lease = await world.engine.acquire('k');
    await world.steal('k');
    await world.clock.advance(THIRD);
    const releasing = lease.release();
    gate.open();
    expect(await releasing).toBe('lost');
    expect(world.of('lost')).toHaveLength(0);
  });

  it('fires no signal and no loss; lost$ completes (rule 7)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const { signal } = lease;
    const seen: string[] = [];
    lease.lost$.subscribe({ next: () => seen.push('lost'), complete: () => seen.push('complete') });
    await lease.release();
    await world.clock.advance(10 * TTL);
    expect(signal.aborted).toBe(false);
    expect(seen).toEqual(['complete']);
    expect(world.of('lost')).toHaveLength(0);
    lease.lost$.subscribe({ complete: () => seen.push('complete at once') });
    expect(seen).toEqual(['complete', 'complete at once']);
  });

  it('is "lost" when the key was not ours any more, and frees nobody else’s (rule 7)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    await world.steal('k');
    const other = await world.rival().acquire('k');
    expect(await lease.release()).toBe('lost');
    expect(other.isHeld).toBe(true);
    expect(await world.isTaken('k')).toBe(true);
  });

  it('is "lost" after a loss, and asks nothing of the store (rule 7)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    await world.steal('k');
    await world.clock.advance(THIRD);
    expect(await lease.release()).toBe('lost');
    expect(world.store.releases).toHaveLength(0);
    expect(world.of('released')).toHaveLength(0);
    expect(world.engine.leases.size).toBe(0);
  });

  it('that finds the loss itself is "lost" (rule 4)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    world.clock.freeze(TRUSTED);
    expect(await lease.release()).toBe('lost');
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['expired']);
  });

  it('that fails is tried once more (rule 7)', async () => {
    const world = new World();
    world.store.next('release', fail(new Error('reset')));
    const lease = await world.engine.acquire('k');
    expect(await lease.release()).toBe('released');
    expect(world.store.releases).toHaveLength(2);
  });

  it('whose first answer was lost is "unknown": "not yours" may mean that it worked (rule 7)', async () => {
    const world = new World();
    world.store.next('release', failAfter(new Error('reset')));
    const lease = await world.engine.acquire('k');
    expect(await lease.release()).toBe('unknown');
    expect(await world.isTaken('k')).toBe(false);
  });

  it.each([
    ['rejects', fail(new Error('down'))],
    ['throws', throwNow(new Error('closed'))],
    ['answers nothing', answer(undefined)],
    ['answers nonsense', answer('OK')],
  ])('is "unknown" and no error when the store %s (rule 7)', async (_, script) => {
    const world = new World();
    world.store.always('release', script);
    const lease = await world.engine.acquire('k');
    expect(await lease.release()).toBe('unknown');
    expect(world.of('released').map((event) => event.outcome)).toEqual(['unknown']);
    expect(world.store.releases).toHaveLength(2);
    expect(world.engine.agenda.size).toBe(0);
  });

  it.each([
    ['is never answered', hang],
    ['is done but never answered', loseReply],
  ])('is "unknown" in bounded time when it %s (rule 7)', async (_, script) => {
    const world = new World();
    world.store.always('release', script);
    const lease = await world.engine.acquire('k');
    const releasing = outcome(lease.release());
    await world.clock.advance(2 * PATIENCE);
    expect(releasing.value).toBe('unknown');
    expect(world.engine.agenda.size).toBe(0);
    expect(world.engine.leases.size).toBe(0);
  });

  it('that worked without an answer leaves the key to the next', async () => {
    const world = new World();
    world.store.always('release', hang);
    const lease = await world.engine.acquire('k');
    const waiting = outcome(world.rival().acquire('k', { wait: '1m' }));
    void lease.release();
    await world.clock.advance(TTL + 100);
    expect(waiting.state).toBe('fulfilled');
  });

  it('and renewals at the same moment end in one release and no loss (rule 7)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const renewing = outcome(lease.renew());
    expect(await lease.release()).toBe('released');
    await settle();
    expect(renewing.state).not.toBe('pending');
    expect(world.of('lost')).toHaveLength(0);
    await world.clock.advance(TTL);
    expect(await world.isTaken('k')).toBe(false);
  });

  it('never hides the error of the work, whatever the store does (rules 7 and 13)', async () => {
    const world = new World();
    world.store.always('release', throwNow(new Error('closed')));
    const mine = new Error('mine');
    const run = world.engine.run('k', () => {
      throw mine;
    });
    await expect(run).rejects.toBe(mine);
  });
});
