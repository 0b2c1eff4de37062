import { describe, expect, it } from '@jest/globals';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import type { LeaseOptions } from '../../../lib/lease.options.js';
import { fail, failAfter, Gate, hang } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { deferred, outcome, PATIENCE, THIRD, World } from './world.js';

describe('the release after a run', () => {
  it('has been sent when the caller goes on, and is not waited for (rule 7)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('release', gate.request);
    expect(await world.engine.run('k', () => 'result')).toBe('result');
    expect(gate.reached).toBe(1);
    expect(world.of('released')).toEqual([]);
    gate.open();
    await settle();
    expect(world.of('released').map((event) => event.outcome)).toEqual(['released']);
    expect(world.engine.leases.size).toBe(0);
  });

  it('is not waited for by the error of the work either (rule 13)', async () => {
    const world = new World();
    const gate = new Gate();
    const mine = new Error('mine');
    world.store.next('release', gate.request);
    await expect(world.engine.run('k', () => Promise.reject(mine))).rejects.toBe(mine);
    expect(gate.reached).toBe(1);
    gate.open();
    await settle();
    expect(await world.isTaken('k')).toBe(false);
  });

  it('may be sent with what follows; one that is waited for may not', async () => {
    const { engine, store } = new World();
    await engine.run('k', () => {});
    await engine.run('k', () => {}, { awaitRelease: true });
    await (await engine.acquire('k')).release();
    await engine.run('k', () => {}, { minHold: 10 });
    await settle();
    expect(store.releases.map(({ how }) => how.relaxed ?? false)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('is waited for by a shutdown, however many there are (rule 11)', async () => {
    const world = new World();
    const gates = [new Gate(), new Gate(), new Gate()];
    world.store.next('release', ...gates.map((gate) => gate.request));
    for (const key of ['a', 'b', 'c']) await world.engine.run(key, () => {});
    const closed = outcome(world.engine.close(0, 0));
    for (const gate of gates) {
      await settle();
      expect(closed.state).toBe('pending');
      gate.open();
    }
    await settle();
    expect(closed.value).toEqual([]);
    expect(world.of('released')).toHaveLength(3);
    expect(world.engine.agenda.size).toBe(0);
  });

  it('that finds the key gone is told by its event', async () => {
    const world = new World();
    expect(await world.engine.run('k', () => world.steal('k'))).toBeUndefined();
    await settle();
    expect(world.of('released').map((event) => event.outcome)).toEqual(['lost']);
  });

  it('that fails leaves nothing unhandled (rule 12)', async () => {
    const world = new World();
    world.store.always('release', fail(new Error('down')));
    await world.engine.run('k', () => {});
    await settle();
    expect(world.of('released').map((event) => event.outcome)).toEqual(['unknown']);
    expect(world.engine.agenda.size).toBe(0);
  });

  it.each<[string, LeaseOptions]>([
    ['`awaitRelease`', { awaitRelease: true }],
    ['`once`, which it remembers', { once: 'x' }],
  ])('is waited for with %s', async (_, options) => {
    const world = new World();
    const gate = new Gate();
    world.store.next('release', gate.request);
    const run = outcome(world.engine.run('k', () => 'result', options));
    await settle();
    expect([gate.reached, run.state]).toEqual([1, 'pending']);
    gate.open();
    await settle();
    expect(run.value).toBe('result');
  });

  it('with `awaitRelease` that finds the key gone is a loss (rule 13)', async () => {
    const world = new World();
    const run = world.engine.run('k', () => world.steal('k'), { awaitRelease: true });
    await expect(run).rejects.toEqual(new LeaseLostException('k', 'taken'));
  });

  it('with `awaitRelease` never hides the error of the work (rule 13)', async () => {
    const world = new World();
    const mine = new Error('mine');
    const work = async (): Promise<void> => {
      await world.steal('k');
      throw mine;
    };
    await expect(world.engine.run('k', work, { awaitRelease: true })).rejects.toBe(mine);
  });
});

describe('one run after another in the same process', () => {
  it('has the key though the store has not heard of the first release yet', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('release', gate.request);
    await world.engine.run('k', () => {});
    const next = outcome(world.engine.run('k', () => 'next'));
    await settle();
    expect(next.state).toBe('pending');
    gate.open();
    await settle();
    expect(next.value).toBe('next');
  });

  it.each([
    ['was not answered before', failAfter(new Error('reset'))],
    ['failed at first', fail(new Error('reset'))],
    ['hangs at first', hang],
  ])('has the key though the first release %s', async (_, script) => {
    const world = new World();
    world.store.next('release', script);
    await world.engine.run('k', () => {});
    // It asks a little after the release went out, and so waits a little longer than that does.
    await world.clock.advance(1);
    const next = outcome(world.engine.run('k', () => 'next'));
    await world.clock.advance(PATIENCE);
    expect(next.value).toBe('next');
  });

  it('has the key though a renewal was in flight', async () => {
    const world = new World();
    const gate = new Gate();
    const work = deferred();
    world.store.next('renew', gate.reply);
    const both = outcome(
      world.engine.run('k', () => work.promise).then(() => world.engine.run('k', () => 'next')),
    );
    await world.clock.advance(THIRD);
    expect(gate.reached).toBe(1);
    work.resolve(undefined);
    await settle();
    gate.open();
    await settle();
    expect(both.value).toBe('next');
  });

  it('never meets itself, however many there are (rule 9)', async () => {
    const { engine } = new World();
    const fences: number[] = [];
    for (let i = 0; i < 50; i++) await engine.run('k', ({ fence }) => fences.push(fence));
    expect(new Set(fences).size).toBe(50);
    expect(fences).toEqual(fences.toSorted((a, b) => a - b));
  });

  it('is told that another holds the key, who took it in between (rule 9)', async () => {
    const world = new World();
    await world.engine.run('k', () => {});
    const other = await world.rival().acquire('k');
    await expect(world.engine.run('k', () => {})).rejects.toMatchObject({ code: 'LEASE_HELD' });
    expect(other.isHeld).toBe(true);
  });
});
