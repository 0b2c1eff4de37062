import { describe, expect, it } from '@jest/globals';
import type { LeaseOptions } from '../../../lib/lease.options.js';
import type { Lease } from '../../../lib/lease/lease.js';
import { fail, Gate, hang, loseReply, pass } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { LineWorld } from './line-world.js';
import { outcome, PATIENCE, THIRD, TRUSTED, TTL } from './world.js';

const WAIT = 60_000;

/** One holds the key, and another of the same process waits for it. */
async function heldAndAwaited(
  { engine, store }: LineWorld,
  holder: LeaseOptions = {},
  successor: LeaseOptions = {},
) {
  const holding = engine.acquire('k', { wait: WAIT, ...holder });
  const waiting = outcome(engine.acquire('k', { wait: WAIT, ...successor }));
  const first = await holding;
  await settle();
  store.asked = [];
  return { first, waiting };
}

/** Another process holds the key, and one of ours stands in line for it. */
async function inLine({ engine, rival }: LineWorld, options: LeaseOptions = {}) {
  const held = await rival.acquire('k', { ttl: 3_600_000, renew: false });
  const waiting = outcome(engine.acquire('k', { wait: WAIT, ...options }));
  await settle();
  return { held, waiting };
}

describe('a hand-over', () => {
  it('gives the key to the next of the process in one request, with a higher fence (rules 8 and 10)', async () => {
    const world = new LineWorld();
    const { first, waiting } = await heldAndAwaited(world);
    expect(await first.release()).toBe('released');
    await settle();
    expect(world.store.methods).toEqual(['handOver']);
    expect(waiting.value!.fence).toBeGreaterThan(first.fence);
    expect(waiting.value!.isHeld).toBe(true);
  });

  it('lets those of other processes go first who came before (rule 10)', async () => {
    const world = new LineWorld();
    const holding = world.engine.acquire('k', { wait: WAIT });
    await settle();
    const before = outcome(world.rival.acquire('k', { wait: WAIT }));
    await world.clock.advance(1);
    const first = await holding;
    const other = outcome(world.engine.acquire('k', { wait: WAIT }));
    await world.clock.advance(1);
    const last = outcome(world.engine.acquire('k', { wait: WAIT }));
    await settle();
    await first.release();
    await settle();
    expect([before.state, other.state, last.state]).toEqual(['fulfilled', 'pending', 'pending']);
    await before.value!.release();
    await settle();
    expect([other.state, last.state]).toEqual(['fulfilled', 'pending']);
    await other.value!.release();
    await settle();
    expect(last.state).toBe('fulfilled');
  });

  it('to one that gave up meanwhile is given back (rule 2)', async () => {
    const world = new LineWorld();
    const abort = new AbortController();
    const gate = new Gate();
    const { first, waiting } = await heldAndAwaited(world, {}, { signal: abort.signal });
    world.store.next('handOver', gate.reply);
    void first.release();
    await settle();
    abort.abort('enough');
    await settle();
    expect(waiting.error).toBe('enough');
    gate.open();
    await settle();
    expect(world.data.held).toEqual([]);
    expect(world.data.line).toEqual([]);
  });

  it('without an answer is asked for again with the same token, and released again (rule 2)', async () => {
    const world = new LineWorld();
    const { first, waiting } = await heldAndAwaited(world);
    world.store.next('handOver', hang);
    const released = outcome(first.release());
    await world.clock.advance(PATIENCE + 100);
    expect(released.value).toBe('released');
    const next = world.store.asked[0]!.token;
    expect(world.store.asked.slice(1)).toEqual(
      expect.arrayContaining([
        { method: 'release', token: first.holdings[0]!.hold.token },
        { method: 'enqueue', token: next },
      ]),
    );
    expect(waiting.value!.holdings[0]!.hold.token).toBe(next);
  });

  it('that was done without an answer is not done again: same fence, and no telling of the release (rules 2 and 7)', async () => {
    const world = new LineWorld();
    const { first, waiting } = await heldAndAwaited(world);
    world.store.next('handOver', loseReply);
    void first.release();
    await settle();
    const [seat] = world.data.held;
    await world.clock.advance(PATIENCE + 100);
    expect(world.outcomes).toEqual(['unknown']);
    expect(waiting.value!.holdings[0]!.hold.token).toBe(seat!.token);
    expect(world.data.held).toHaveLength(1);
  });

  it('of a key that was not ours any more is "lost", and frees nobody else’s (rule 7)', async () => {
    const world = new LineWorld();
    const { first, waiting } = await heldAndAwaited(world);
    world.data.clear('test/k');
    const other = await world.rival.acquire('k');
    expect(await first.release()).toBe('lost');
    await settle();
    expect(world.store.methods).toEqual(['handOver']);
    expect(other.isHeld).toBe(true);
    expect(waiting.state).toBe('pending');
  });

  it.each<[string, LeaseOptions, LeaseOptions]>([
    ['a successor with a unit of work', {}, { once: 'x' }],
    ['a successor that shares the key', {}, { permits: 2 }],
    ['a holder that keeps the key for its minHold', { minHold: '10s' }, {}],
  ])('is none for %s: a plain release', async (_, holder, successor) => {
    const world = new LineWorld();
    const { first, waiting } = await heldAndAwaited(world, holder, successor);
    await first.release();
    expect(world.store.methods).toContain('release');
    expect(world.store.methods).not.toContain('handOver');
    await world.clock.advance(10_100);
    expect(waiting.state).toBe('fulfilled');
  });

  it('is none for a unit of work that is done', async () => {
    const world = new LineWorld();
    const work = world.engine.run('k', () => {}, { once: 'x', wait: WAIT });
    const waiting = outcome(world.engine.acquire('k', { wait: WAIT }));
    await work;
    await settle();
    expect(world.store.methods).not.toContain('handOver');
    expect(waiting.state).toBe('fulfilled');
  });
});

describe('one in line', () => {
  it('has the key by a call, without asking again (rule 10)', async () => {
    const world = new LineWorld();
    const { held, waiting } = await inLine(world);
    await held.release();
    await settle();
    expect(waiting.value!.isHeld).toBe(true);
    expect(waiting.value!.fence).toBeGreaterThan(held.fence);
    expect(world.store.methods).toEqual(['enqueue']);
  });

  it('is held for `maxHold` from when it was called, not from when it began to wait', async () => {
    const world = new LineWorld();
    const held = await world.rival.acquire('k');
    const waiting = world.engine.acquire('k', { wait: TTL, maxHold: TTL / 10 });
    await world.clock.advance(TTL / 5);
    await held.release();
    const lease = await waiting;
    expect(lease.isHeld).toBe(true);
    await world.clock.advance(TTL / 10);
    expect(lease.isHeld).toBe(false);
  });

  it('trusts a call from when it began to stand there, not from when it came (rule 3)', async () => {
    const world = new LineWorld();
    const { held, waiting } = await inLine(world);
    await world.clock.advance(THIRD - 1);
    await held.release();
    await settle();
    expect(waiting.value!.remaining).toBe(TRUSTED - (THIRD - 1));
  });

  it('that is called while it asks has the key whether it is answered or not (rule 2)', async () => {
    const world = new LineWorld();
    const { held, waiting } = await inLine(world);
    world.store.next('enqueue', hang);
    await world.clock.advance(THIRD);
    expect(world.store.methods).toEqual(['enqueue', 'enqueue']);
    await held.release();
    await world.clock.advance(PATIENCE);
    expect(waiting.value!.isHeld).toBe(true);
    expect(world.data.held).toHaveLength(1);
  });

  it('that is called and answered has one lease, with the trust of the answer (rules 2 and 3)', async () => {
    const world = new LineWorld();
    const gate = new Gate();
    const { held, waiting } = await inLine(world);
    world.store.next('enqueue', gate.request);
    await world.clock.advance(THIRD);
    await held.release();
    gate.open();
    await settle();
    expect(waiting.value!.remaining).toBe(TRUSTED);
    expect(world.events.filter(({ type }) => type === 'acquired')).toHaveLength(1);
  });

  it('does not believe a call that is older than what it grants (rule 3)', async () => {
    const world = new LineWorld();
    const { held, waiting } = await inLine(world);
    world.store.always('enqueue', hang);
    world.store.calls = [];
    await world.clock.advance(1);
    await held.release();
    await world.clock.advance(TTL);
    const other = await world.rival.acquire('k');
    world.store.deliver();
    await settle();
    expect([waiting.state, other.isHeld]).toEqual(['pending', true]);
    await other.release();
    world.store.always('enqueue', pass);
    await world.clock.advance(TTL);
    expect(waiting.value!.fence).toBeGreaterThan(other.fence);
  });

  it('asks again when too little trust is left by the time it is called (rule 3)', async () => {
    const world = new LineWorld();
    const { held, waiting } = await inLine(world, { ttl: TTL });
    world.store.always('enqueue', hang);
    await world.clock.advance(THIRD + PATIENCE + 1);
    world.store.always('enqueue', pass);
    await held.release();
    const [seat] = world.data.held;
    await settle();
    const lease: Lease = waiting.value!;
    expect(lease.holdings[0]!.hold.token).toBe(seat!.token);
    expect(lease.remaining).toBe(TRUSTED);
  });

  it('that has gone gives back what it is called for (rule 2)', async () => {
    const world = new LineWorld();
    const abort = new AbortController();
    const { held, waiting } = await inLine(world, { signal: abort.signal });
    world.store.next('release', fail(new Error('reset')));
    abort.abort();
    await settle();
    expect(waiting.state).toBe('rejected');
    expect(world.data.line).toHaveLength(1);
    await held.release();
    await settle();
    expect(world.data.held).toEqual([]);
  });

  it('that gives up leaves the line (rule 10)', async () => {
    const world = new LineWorld();
    const { waiting } = await inLine(world, { wait: 1_000 });
    expect(world.data.line).toHaveLength(1);
    await world.clock.advance(1_000);
    expect(waiting.error).toMatchObject({ code: 'LEASE_HELD' });
    expect(world.data.line).toEqual([]);
    expect(world.engine.awaited).toBe(0);
  });

  it('is called any number of times and has one lease', async () => {
    const world = new LineWorld();
    const { held, waiting } = await inLine(world);
    world.store.calls = [];
    await held.release();
    const { calls } = world.store;
    world.store.calls = [...calls, ...calls];
    world.store.deliver();
    await settle();
    expect(waiting.value!.isHeld).toBe(true);
    expect(world.store.methods).toEqual(['enqueue']);
    expect(world.data.held).toHaveLength(1);
  });
});
