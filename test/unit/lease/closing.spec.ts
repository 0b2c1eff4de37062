import { describe, expect, it } from '@jest/globals';
import { LeaseUnavailableException } from '../../../lib/exceptions/lease-unavailable.exception.js';
import { SHUTTING_DOWN } from '../../../lib/lease.messages.js';
import { fail, Gate, hang, loseReply } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { deferred, outcome, PATIENCE, THIRD, TRUSTED, TTL, World } from './world.js';

const GRACE = 20_000;
const STOP_GRACE = 5_000;

function expectNothingLeft({ engine, clock, store }: World): void {
  expect({
    appointments: engine.agenda.size,
    timers: clock.timers,
    awaited: engine.awaited,
    watchers: store.watchers,
  }).toEqual({ appointments: 0, timers: 0, awaited: 0, watchers: 0 });
}

describe('closing', () => {
  it('with nothing in flight is done at once', async () => {
    const world = new World();
    expect(await world.engine.close(GRACE, STOP_GRACE)).toEqual([]);
    expectNothingLeft(world);
  });

  it('lets work in flight finish while its lease is renewed, and only then releases (rule 11)', async () => {
    const world = new World();
    const work = deferred<string>();
    let signal: AbortSignal | undefined;
    const run = outcome(
      world.engine.run('k', (lease) => {
        ({ signal } = lease);
        return work.promise;
      }),
    );
    await settle();
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await world.clock.advance(GRACE - 1);
    expect(signal!.aborted).toBe(false);
    expect(await world.isTaken('k')).toBe(true);
    expect(world.of('renewed').length).toBeGreaterThanOrEqual(9);
    work.resolve('finished');
    await settle();
    expect(run.value).toBe('finished');
    expect(closed.value).toEqual([]);
    expect(await world.isTaken('k')).toBe(false);
    expectNothingLeft(world);
  });

  it('aborts what did not finish, waits until it has stopped, and then releases (rule 11)', async () => {
    const world = new World();
    const stopped = deferred();
    const order: string[] = [];
    const run = outcome(
      world.engine.run('k', async ({ signal }) => {
        await new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => resolve());
        });
        order.push('told');
        await stopped.promise;
        order.push('stopped');
        throw signal.reason;
      }),
    );
    world.store.always('release', (call) => {
      order.push('released');
      return call();
    });
    await settle();
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await world.clock.advance(GRACE);
    expect(order).toEqual(['told']);
    await world.clock.advance(STOP_GRACE - 1);
    expect(await world.isTaken('k')).toBe(true);
    stopped.resolve();
    await settle();
    expect(order).toEqual(['told', 'stopped', 'released']);
    expect(run.error).toEqual(new Error(SHUTTING_DOWN()));
    expect(closed.value).toEqual([]);
    expect(world.of('lost')).toHaveLength(0);
    expectNothingLeft(world);
  });

  it('does not release the lease of work that never stops: it is left to its ttl, and named (rule 11)', async () => {
    const world = new World();
    const never = deferred<string>();
    const run = outcome(world.engine.run(['a', 'b'], () => never.promise));
    await settle();
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await world.clock.advance(GRACE + STOP_GRACE);
    expect(closed.value).toEqual(['a', 'b']);
    expect(world.store.releases).toHaveLength(0);
    expect(await world.isTaken('a')).toBe(true);
    expectNothingLeft(world);
    const { length } = world.store.renewals;
    await world.clock.advance(TTL);
    expect(world.store.renewals).toHaveLength(length);
    expect(await world.isTaken('a')).toBe(false);
    never.resolve('much too late');
    await settle();
    expect(run.error).toMatchObject({ code: 'LEASE_LOST' });
  });

  it('is not undone by a renewal that comes back afterwards', async () => {
    const world = new World();
    const never = deferred();
    void outcome(world.engine.run('k', () => never.promise));
    await settle();
    const gate = new Gate();
    world.store.always('renew', gate.reply);
    const closed = outcome(world.engine.close(THIRD, 100));
    await world.clock.advance(THIRD + 1_100);
    expect(closed.state).toBe('fulfilled');
    gate.open();
    await world.clock.advance(10 * TTL);
    expect(gate.reached).toBeLessThanOrEqual(2);
    expectNothingLeft(world);
  });

  it('lets work that it left to its ttl give its lease back when it does stop', async () => {
    const world = new World();
    const late = deferred<string>();
    const run = outcome(world.engine.run('k', () => late.promise));
    await settle();
    const closed = outcome(world.engine.close(0, 0));
    await world.clock.advance(1);
    expect(closed.value).toEqual(['k']);
    late.resolve('stopped');
    await settle();
    expect(run.value).toBe('stopped');
    expect(await world.isTaken('k')).toBe(false);
    expect(world.engine.agenda.size).toBe(0);
  });

  it('refuses those who wait, at once and as unavailable, and leaves nothing of them (rule 11)', async () => {
    const world = new World();
    await world.occupy('k');
    const waiting = Array.from({ length: 3 }, () =>
      outcome(world.engine.acquire('k', { wait: Infinity })),
    );
    await world.clock.advance(3_000);
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await settle();
    for (const { error } of waiting) {
      expect(error).toBeInstanceOf(LeaseUnavailableException);
      expect((error as Error).cause).toEqual(new Error(SHUTTING_DOWN()));
    }
    await settle();
    expect(closed.state).toBe('fulfilled');
    expectNothingLeft(world);
  });

  it('refuses new claims from its first moment on (rule 11)', async () => {
    const world = new World();
    const work = deferred();
    const run = world.engine.run('k', () => work.promise);
    await settle();
    const closed = world.engine.close(GRACE, STOP_GRACE);
    await expect(world.engine.acquire('other')).rejects.toBeInstanceOf(LeaseUnavailableException);
    await expect(world.engine.tryAcquire('other', { wait: '1m' })).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
    });
    expect(world.store.claims).toHaveLength(1);
    work.resolve();
    await run;
    await closed;
  });

  it.each([
    ['that waits', { wait: '1m' } as const],
    ['that does not wait', {}],
  ])(
    'gives back what a claim %s is granted after it began (rules 2 and 11)',
    async (_, options) => {
      const world = new World();
      const gate = new Gate();
      world.store.next('acquire', gate.reply);
      const asked = outcome(world.engine.acquire('k', options));
      await settle();
      const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
      await settle();
      expect(asked.error).toBeInstanceOf(LeaseUnavailableException);
      expect(closed.state).toBe('pending');
      gate.open();
      await settle();
      expect(closed.state).toBe('fulfilled');
      expect(await world.isTaken('k')).toBe(false);
      expect(world.engine.leases.size).toBe(0);
      expectNothingLeft(world);
    },
  );

  it('does not wait for ever for a claim without an answer', async () => {
    const world = new World();
    world.store.next('acquire', loseReply);
    void outcome(world.engine.acquire('k'));
    await settle();
    const closed = outcome(world.engine.close(0, 0));
    await world.clock.advance(PATIENCE);
    expect(closed.state).toBe('fulfilled');
    expect(await world.isTaken('k')).toBe(false);
    expectNothingLeft(world);
  });

  it('gives back keys that were taken on the way to several', async () => {
    const world = new World();
    await world.occupy('b');
    const asked = outcome(world.engine.acquire(['a', 'b'], { wait: '1m' }));
    await settle();
    expect(await world.isTaken('a')).toBe(true);
    await world.engine.close(GRACE, STOP_GRACE);
    expect(asked.state).toBe('rejected');
    expect(await world.isTaken('a')).toBe(false);
    expectNothingLeft(world);
  });

  it('releases at once a lease taken by hand whose signal nobody asked for', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    await world.engine.close(GRACE, STOP_GRACE);
    expect(lease.signal.reason).toEqual(new Error(SHUTTING_DOWN()));
    expect(await world.isTaken('k')).toBe(false);
    expect(world.engine.leases.size).toBe(0);
    expectNothingLeft(world);
  });

  it('gives who asked for the signal of a lease taken by hand time to stop (rule 11)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const { signal } = lease;
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await settle();
    expect(signal.reason).toEqual(new Error(SHUTTING_DOWN()));
    await world.clock.advance(STOP_GRACE / 2);
    expect(await world.isTaken('k')).toBe(true);
    expect(closed.state).toBe('pending');
    expect(await lease.release()).toBe('released');
    await settle();
    expect(closed.value).toEqual([]);
    expectNothingLeft(world);
  });

  it('leaves to its ttl a lease taken by hand whose holder was told and did not stop (rule 11)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    expect(lease.signal.aborted).toBe(false);
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await world.clock.advance(STOP_GRACE + 1);
    expect(closed.value).toEqual(['k']);
    expect(await world.isTaken('k')).toBe(true);
  });

  it('does not wait for a lease taken by hand that is lost meanwhile', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { maxHold: STOP_GRACE / 2 });
    expect(lease.signal.aborted).toBe(false);
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await world.clock.advance(STOP_GRACE / 2 + 1);
    expect(closed.value).toEqual([]);
  });

  it('waits for a release that is under way, and does not call its work unfinished', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('release', gate.request);
    const run = outcome(world.engine.run('k', () => 'done'));
    await settle();
    const closed = outcome(world.engine.close(0, 0));
    await world.clock.advance(100);
    expect(closed.state).toBe('pending');
    gate.open();
    await settle();
    expect(run.value).toBe('done');
    expect(closed.value).toEqual([]);
  });

  it.each([
    ['hangs', hang],
    ['fails', fail(new Error('down'))],
  ])('ends though the store %s at everything (rule 12)', async (_, script) => {
    const world = new World();
    const work = deferred();
    void outcome(world.engine.run('k', () => work.promise));
    await world.engine.acquire('idle');
    await settle();
    for (const method of ['acquire', 'renew', 'release', 'watch'] as const) {
      world.store.always(method, script);
    }
    void outcome(world.engine.acquire('k', { wait: '1h' }));
    const closed = outcome(world.engine.close(1_000, 1_000));
    await world.clock.advance(20_000);
    expect(closed.value).toEqual(['k']);
    expectNothingLeft(world);
  });

  it('ends at once for work whose lease is lost and which stops for that (rule 11)', async () => {
    const world = new World();
    world.store.always('renew', hang);
    const run = outcome(
      world.engine.run(
        'k',
        ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          }),
      ),
    );
    await settle();
    const closed = outcome(world.engine.close(GRACE, STOP_GRACE));
    await world.clock.advance(TRUSTED);
    expect(run.error).toMatchObject({ reason: 'expired' });
    expect(closed.value).toEqual([]);
  });

  it('leaves no renewal by hand without an answer, though the store gives none (rule 12)', async () => {
    const world = new World();
    let byHand: ReturnType<typeof outcome<void>> | undefined;
    const automatic = new Gate();
    world.store.next('renew', automatic.reply);
    world.store.always('renew', hang);
    void outcome(
      world.engine.run('k', async (lease) => {
        await world.clock.advance(THIRD);
        byHand = outcome(lease.renew());
        await deferred().promise;
      }),
    );
    await world.clock.advance(THIRD);
    const closed = outcome(world.engine.close(0, 0));
    await world.clock.advance(1);
    expect(automatic.reached).toBe(1);
    // The one by hand is sent in the very moment in which closing goes on.
    automatic.open();
    await world.clock.advance(TTL);
    expect(closed.value).toEqual(['k']);
    expect(byHand!.state).toBe('rejected');
    expect(world.engine.agenda.size).toBe(0);
  });

  it('may be called twice, at any time', async () => {
    const world = new World();
    const work = deferred();
    const run = world.engine.run('k', () => work.promise);
    await world.occupy('b');
    const asked = outcome(world.engine.acquire(['a', 'b'], { wait: '1m' }));
    await settle();
    const gate = new Gate();
    world.store.next('release', gate.request);
    const both = [outcome(world.engine.close(GRACE, 0)), outcome(world.engine.close(GRACE, 0))];
    await settle();
    work.resolve();
    await run;
    await settle();
    expect(both.map(({ state }) => state)).toEqual(['pending', 'pending']);
    gate.open();
    await settle();
    expect(asked.state).toBe('rejected');
    expect(both.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
    expectNothingLeft(world);
  });
});

describe('idle', () => {
  it('says at once that nothing is in flight', async () => {
    expect(await new World().engine.idle(GRACE)).toBe(true);
  });

  it('waits for the work that is in flight now, and for no other', async () => {
    const world = new World();
    const [first, second] = [deferred(), deferred()];
    void world.engine.run('a', () => first.promise);
    await settle();
    const idle = outcome(world.engine.idle(GRACE));
    void world.engine.run('b', () => second.promise);
    await settle();
    first.resolve();
    await settle();
    expect(idle.value).toBe(true);
    second.resolve();
    await settle();
    expect(world.engine.agenda.size).toBe(0);
  });

  it('says after its time that work is in flight', async () => {
    const world = new World();
    const work = deferred();
    void world.engine.run('a', () => work.promise);
    await settle();
    const idle = outcome(world.engine.idle(100));
    await world.clock.advance(100);
    expect(idle.value).toBe(false);
    work.resolve();
    await settle();
  });
});
