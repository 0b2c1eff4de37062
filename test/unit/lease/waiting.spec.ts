import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { LeaseHeldException } from '../../../lib/exceptions/lease-held.exception.js';
import { LeaseUnavailableException } from '../../../lib/exceptions/lease-unavailable.exception.js';
import type { LeaseOptions } from '../../../lib/lease.options.js';
import type { Lease } from '../../../lib/lease/lease.js';
import { answer, fail, Gate, hang, throwNow } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { realProcess } from '../../support/real-process.js';
import { outcome, PATIENCE, THIRD, TRUSTED, TTL, World } from './world.js';

/** Nothing of a wait is left, in the process or at the store. */
async function expectNothingLeft({ engine, store }: World): Promise<void> {
  await settle();
  expect({
    awaited: engine.awaited,
    appointments: engine.agenda.size,
    watchers: store.watchers,
  }).toEqual({ awaited: 0, appointments: 0, watchers: 0 });
}

describe('waiting', () => {
  it('gets the key when it is released, in this process (rule 10)', async () => {
    const world = new World();
    const first = await world.engine.acquire('k');
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(3_000);
    expect(waiting.state).toBe('pending');
    await first.release();
    await settle();
    expect(waiting.value!.isHeld).toBe(true);
    expect(world.of('acquired').at(-1)).toMatchObject({ waitedMs: 3_000 });
  });

  it('gets the key when it is released elsewhere, woken by a push (rule 10)', async () => {
    const world = new World();
    const first = await world.rival().acquire('k');
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(4_000);
    const asked = world.store.claims.length;
    await first.release();
    await settle();
    expect(waiting.state).toBe('fulfilled');
    expect(world.store.claims).toHaveLength(asked + 1);
  });

  it('with a push below it asks the store seldom (rule 10)', async () => {
    const world = new World();
    await world.rival().acquire('k', { ttl: '1h' });
    void outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(59_000);
    // Once, once more when it listens, and then every five seconds as the net below the push.
    expect(world.store.claims.length).toBeLessThanOrEqual(14);
  });

  it.each([
    ['has no push', { push: false }, undefined],
    ['cannot be watched', {}, fail(new Error('no subscription'))],
    ['throws when it is watched', {}, throwNow(new Error('no subscription'))],
    ['never says that it is watched', {}, hang],
  ])('polls a store that %s (rule 10)', async (_, limits, script) => {
    const world = new World({}, limits);
    if (script) world.store.always('watch', script);
    const first = await world.rival().acquire('k');
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(4_000);
    await first.release();
    await world.clock.advance(300);
    expect(waiting.state).toBe('fulfilled');
  });

  it('polls by the holder’s remaining time, not much later than the key can be free (rule 10)', async () => {
    const world = new World({}, { push: false });
    await world.rival().acquire('k', { renew: false, ttl: 70 });
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(77);
    expect(waiting.state).toBe('fulfilled');
  });

  it('misses no release between the refusal and the watch (rule 10)', async () => {
    const world = new World();
    const first = await world.rival().acquire('k', { ttl: '1h' });
    const gate = new Gate();
    world.store.next('watch', gate.request);
    const waiting = outcome(world.engine.acquire('k', { wait: '1h' }));
    await settle();
    await first.release();
    gate.open();
    await settle();
    expect(waiting.state).toBe('fulfilled');
  });

  it('misses no release while its own claim is on the way (rule 10)', async () => {
    const world = new World();
    const first = await world.rival().acquire('k', { ttl: '1h' });
    const waiting = outcome(world.engine.acquire('k', { wait: '1h' }));
    await settle();
    const gate = new Gate();
    world.store.next('acquire', gate.reply);
    await world.clock.advance(5_000);
    expect(gate.reached).toBe(1);
    await first.release();
    gate.open();
    await settle();
    expect(waiting.state).toBe('fulfilled');
  });

  it('is first come, first served (rule 10)', async () => {
    const world = new World();
    const first = await world.engine.acquire('k');
    const order: number[] = [];
    const runs = [0, 1, 2, 3, 4].map((i) =>
      world.engine.run('k', () => void order.push(i), { wait: '1m' }),
    );
    await settle();
    await first.release();
    await world.clock.advance(100);
    await Promise.all(runs);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it('has one contender at the store, however many wait (rule 10)', async () => {
    const world = new World({}, { push: false });
    const first = await world.rival().acquire('k', { ttl: '1h' });
    const waiting = Array.from({ length: 20 }, () =>
      outcome(world.engine.acquire('k', { wait: '1m' })),
    );
    await world.clock.advance(2_000);
    expect(new Set(world.store.claims.map(({ token }) => token)).size).toBe(1);
    await first.release();
    await world.clock.advance(300);
    expect(waiting.map(({ state }) => state)).toEqual([
      'fulfilled',
      ...Array.from({ length: 19 }, () => 'pending'),
    ]);
  });

  it('does not ask the store while the holder is one of us (rule 10)', async () => {
    const world = new World();
    const runs = Array.from({ length: 10 }, () =>
      outcome(world.engine.acquire('k', { wait: '1h' })),
    );
    await world.clock.advance(10 * TTL);
    expect(runs.filter(({ state }) => state === 'fulfilled')).toHaveLength(1);
    expect(world.store.claims).toHaveLength(1);
  });

  it('warns of no leak, however many wait', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    realProcess.on('warning', onWarning);
    const { engine, clock } = new World();
    const first = await engine.acquire('k');
    const runs = Array.from({ length: 30 }, () => engine.run('k', () => {}, { wait: '1m' }));
    for (let i = 0; i < 30; i++) first.signal.addEventListener('abort', () => {});
    await settle();
    await first.release();
    await clock.advance(1_000);
    await Promise.all(runs);
    realProcess.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('is refused as held at its deadline, with the time until the key can be free (rules 9 and 10)', async () => {
    const world = new World();
    await world.rival().acquire('k', { renew: false });
    const waiting = outcome(world.engine.acquire('k', { wait: 1_000 }));
    await world.clock.advance(999);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(1);
    expect(waiting.error).toBeInstanceOf(LeaseHeldException);
    expect(waiting.error).toHaveProperty('retryAfterMs');
    await expectNothingLeft(world);
  });

  it('is null for tryAcquire at its deadline', async () => {
    const world = new World();
    await world.rival().acquire('k');
    const waiting = outcome(world.engine.tryAcquire('k', { wait: 1_000 }));
    await world.clock.advance(1_000);
    expect(waiting).toEqual({ state: 'fulfilled', value: null });
  });

  it('is refused at its deadline though its turn to ask never came (rule 10)', async () => {
    const world = new World({}, { push: false });
    await world.rival().acquire('k', { ttl: '1h' });
    const ahead = outcome(world.engine.acquire('k', { wait: '1m' }));
    const behind = outcome(world.engine.acquire('k', { wait: 500 }));
    await world.clock.advance(500);
    expect(behind.error).toBeInstanceOf(LeaseHeldException);
    expect((behind.error as LeaseHeldException).retryAfterMs).toBeGreaterThan(3_500_000);
    expect(ahead.state).toBe('pending');
    expect(new Set(world.store.claims.map(({ token }) => token)).size).toBe(1);
  });

  it('is refused at its deadline when the holder is one of us (rule 10)', async () => {
    const world = new World();
    const holder = await world.engine.acquire('k', { wait: '1m' });
    const behind = [1, 2].map(() => outcome(world.engine.acquire('k', { wait: 500 })));
    await world.clock.advance(500);
    for (const { error } of behind) expect(error).toBeInstanceOf(LeaseHeldException);
    await holder.release();
    await expectNothingLeft(world);
  });

  it('at the deadline keeps "held" when only its last request went unanswered (rule 9)', async () => {
    const world = new World({}, { push: false });
    await world.rival().acquire('k');
    world.store.next('acquire', (call) => call(), hang);
    const waiting = outcome(world.engine.acquire('k', { wait: 1_000 }));
    await world.clock.advance(1_000);
    expect(waiting.error).toBeInstanceOf(LeaseHeldException);
  });

  it('gives its first request its full time even when the wait is shorter', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.reply);
    const waiting = outcome(world.engine.acquire('k', { wait: 10 }));
    await world.clock.advance(PATIENCE - 100);
    gate.open();
    await settle();
    expect(waiting.state).toBe('fulfilled');
  });

  it('ends with the signal, which is the reason, and leaves nothing behind (rule 10)', async () => {
    const world = new World();
    const holder = await world.rival().acquire('k');
    const abort = new AbortController();
    const waiting = outcome(world.engine.acquire('k', { wait: Infinity, signal: abort.signal }));
    await world.clock.advance(7_000);
    expect(waiting.state).toBe('pending');
    abort.abort();
    await settle();
    expect(waiting.error).toBe(abort.signal.reason);
    await expectNothingLeft(world);
    await holder.release();
  });

  it('with a signal that is aborted already asks nothing (rule 10)', async () => {
    const world = new World();
    const reason = new Error('over');
    const signal = AbortSignal.abort(reason);
    await expect(world.engine.acquire('k', { wait: '1m', signal })).rejects.toBe(reason);
    expect(world.store.claims).toHaveLength(0);
    await expectNothingLeft(world);
  });

  it('that ends in any moment leaves nothing behind and keeps nobody waiting (rule 10)', async () => {
    for (let delay = 0; delay < 24; delay++) {
      const world = new World();
      const holder = await world.rival().acquire('k', { ttl: '1h' });
      const gate = new Gate();
      world.store.next('acquire', gate.reply);
      const abort = new AbortController();
      const dying = outcome(world.engine.acquire('k', { wait: '1h', signal: abort.signal }));
      const next = outcome(world.engine.acquire('k', { wait: '1h' }));
      await settle();
      gate.open();
      for (let i = 0; i < delay; i++) await Promise.resolve();
      abort.abort();
      await settle();
      expect({ delay, state: dying.state }).toEqual({ delay, state: 'rejected' });
      await holder.release();
      await world.clock.advance(10);
      expect({ delay, state: next.state }).toEqual({ delay, state: 'fulfilled' });
      await next.value!.release();
      await expectNothingLeft(world);
    }
  });

  it('removes a waiter that is aborted before its turn; the others keep their order (rule 10)', async () => {
    const world = new World();
    const holder = await world.engine.acquire('k');
    const abort = new AbortController();
    const order: string[] = [];
    const a = world.engine.run('k', () => void order.push('a'), { wait: '1m' });
    const b = outcome(
      world.engine.run('k', () => void order.push('b'), { wait: '1m', signal: abort.signal }),
    );
    const c = world.engine.run('k', () => void order.push('c'), { wait: '1m' });
    await settle();
    abort.abort();
    await settle();
    expect(b.state).toBe('rejected');
    await holder.release();
    await world.clock.advance(100);
    await Promise.all([a, c]);
    expect(order).toEqual(['a', 'c']);
    await expectNothingLeft(world);
  });

  it('passes the turn on when the head dies with its claim on the way (rule 10)', async () => {
    const world = new World();
    const gate = new Gate();
    world.store.next('acquire', gate.reply);
    const abort = new AbortController();
    const head = outcome(world.engine.acquire('k', { wait: '1m', signal: abort.signal }));
    const next = outcome(world.engine.acquire('k', { wait: '1m' }));
    await settle();
    abort.abort();
    await settle();
    expect(head.state).toBe('rejected');
    // The key was granted to nobody, and is free as soon as that is known.
    gate.open();
    await settle();
    expect(next.state).toBe('fulfilled');
  });

  it('passes the turn on when the head’s deadline comes (rule 10)', async () => {
    const world = new World();
    const holder = await world.rival().acquire('k');
    const head = outcome(world.engine.acquire('k', { wait: 500 }));
    const next = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(500);
    expect(head.state).toBe('rejected');
    await holder.release();
    await world.clock.advance(10);
    expect(next.state).toBe('fulfilled');
  });

  it('gets the key of a holder that is lost, at once (rules 5 and 10)', async () => {
    const world = new World();
    const holder = await world.engine.acquire('k', { renew: false, wait: 1 });
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(TRUSTED);
    expect(holder.isHeld).toBe(false);
    expect(waiting.state).toBe('fulfilled');
  });

  it('gets the key of a holder that crashed, by its ttl (rule 10)', async () => {
    const world = new World();
    await world.memory.acquire({
      key: 'test/k',
      token: 'crashed',
      ttl: TTL,
      permits: 1,
      instance: 'crashed',
      patience: 1,
    });
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(TTL - 1);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(10);
    expect(waiting.state).toBe('fulfilled');
  });

  it('goes on through a store that is unavailable for a while (rule 10)', async () => {
    const world = new World();
    world.store.next(
      'acquire',
      fail(new Error('down')),
      throwNow(new Error('down')),
      answer('LOADING'),
      hang,
    );
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(PATIENCE + 1_000);
    expect(waiting.state).toBe('fulfilled');
    expect(new Set(world.store.claims.map(({ token }) => token)).size).toBe(1);
  });

  it('at a store that stays unavailable is refused as that (rule 9)', async () => {
    const world = new World();
    world.store.always('acquire', fail(new Error('down')));
    const waiting = outcome(world.engine.acquire('k', { wait: '10s' }));
    await world.clock.advance(10_000);
    expect(waiting.error).toBeInstanceOf(LeaseUnavailableException);
    // Not more often than a poll.
    expect(world.store.claims.length).toBeLessThan(100);
    await expectNothingLeft(world);
  });

  it.each([-1, -1e9, Number.NaN, Infinity, '7'])(
    'on a refusal that names %p as its time asks no more often than a poll (rule 12)',
    async (retryAfterMs) => {
      const world = new World();
      world.store.always('acquire', answer({ granted: false, reason: 'held', retryAfterMs }));
      const waiting = outcome(world.engine.acquire('k', { wait: '10s' }));
      await world.clock.advance(10_000);
      expect(waiting.error).toBeInstanceOf(LeaseHeldException);
      expect(world.store.claims.length).toBeLessThan(100);
    },
  );

  it('ends at once when the work is done meanwhile', async () => {
    const world = new World();
    const rival = world.rival();
    const first = rival.run('k', () => world.clock.advance(100), { once: 'job' });
    const waiting = outcome(world.engine.acquire('k', { wait: '1m', once: 'job' }));
    await first;
    await settle();
    expect(waiting.error).toMatchObject({ code: 'LEASE_DONE', once: 'job' });
    await expectNothingLeft(world);
  });

  it('with permits lets as many in as there are, in order (rule 10)', async () => {
    const world = new World();
    const entered: number[] = [];
    const waiting = Array.from({ length: 5 }, (_, i) => {
      const asked = world.engine.acquire('k', { permits: 2, wait: '1m' });
      void asked.then(() => entered.push(i));
      return asked;
    });
    await settle();
    expect(entered).toEqual([0, 1]);
    for (let i = 0; i < 3; i++) {
      await (await waiting[i]!).release();
      await world.clock.advance(10);
      expect(entered).toHaveLength(3 + i);
    }
    expect(entered).toEqual([0, 1, 2, 3, 4]);
  });

  it('is not overtaken by one that does not wait, while the key is known to be held (rule 10)', async () => {
    const world = new World();
    await world.rival().acquire('k');
    void outcome(world.engine.acquire('k', { wait: '1m' }));
    await world.clock.advance(100);
    const { length } = world.store.claims;
    await expect(world.engine.acquire('k')).rejects.toMatchObject({ code: 'LEASE_HELD' });
    expect(world.store.claims).toHaveLength(length);
  });

  it('does not make a key look held that was released (rule 9)', async () => {
    const world = new World();
    const holder = await world.rival().acquire('k');
    const abort = new AbortController();
    void outcome(world.engine.acquire('k', { wait: '1m', signal: abort.signal }));
    await world.clock.advance(100);
    abort.abort();
    await holder.release();
    await settle();
    expect(await world.engine.tryAcquire('k')).not.toBeNull();
  });

  it('for a key that is free costs one request and leaves nothing behind (rule 10)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { wait: '1m' });
    expect(world.store.claims).toHaveLength(1);
    expect(world.engine.awaited).toBe(0);
    await lease.release();
    await expectNothingLeft(world);
  });

  it('sleeps on a release that takes its time, and then asks', async () => {
    const world = new World();
    const asked = world.engine.acquire('k', { wait: 1 });
    const waiting = outcome(world.engine.acquire('k', { wait: '1m' }));
    const holder = await asked;
    const gate = new Gate();
    world.store.next('release', gate.request);
    const releasing = holder.release();
    await world.clock.advance(1_000);
    expect(world.store.claims).toHaveLength(1);
    gate.open();
    await releasing;
    await settle();
    expect(waiting.state).toBe('fulfilled');
  });

  it('survives a watch that cannot be ended (rule 12)', async () => {
    const world = new World();
    await world.rival().acquire('k');
    world.store.next('watch', async () => () => Promise.reject(new Error('no')));
    const waiting = outcome(world.engine.acquire('k', { wait: 100 }));
    await world.clock.advance(100);
    expect(waiting.state).toBe('rejected');
    await settle();
  });

  it('ends a watch that is begun only after the wait was over (rule 10)', async () => {
    const world = new World();
    await world.rival().acquire('k');
    const gate = new Gate();
    world.store.next('watch', gate.request);
    void outcome(world.engine.acquire('k', { wait: 100 }));
    await world.clock.advance(100);
    gate.open();
    await expectNothingLeft(world);
  });

  it('in many contexts at once, with releases, losses and aborts, ends for everybody (rule 10)', async () => {
    const world = new World();
    const engines = [world.engine, world.rival(), world.rival()];
    const abort = new AbortController();
    const holders = new Set<Lease>();
    let most = 0;
    const all = Array.from({ length: 90 }, (_, i) =>
      outcome(
        engines[i % 3]!.run(
          'k',
          async (lease) => {
            holders.add(lease);
            most = Math.max(most, [...holders].filter(({ isHeld }) => isHeld).length);
            await new Promise<void>(
              (resolve) => void world.clock.setTimer(resolve, i % 7 === 0 ? THIRD * 4 : 20),
            );
            holders.delete(lease);
          },
          {
            wait: i % 5 === 0 ? 3_000 : '1h',
            renew: i % 7 !== 0,
            ...(i % 11 === 0 ? { signal: abort.signal } : {}),
          },
        ),
      ),
    );
    await world.clock.advance(10_000);
    abort.abort();
    await world.clock.advance(600_000);
    expect(all.filter(({ state }) => state === 'pending')).toHaveLength(0);
    expect(most).toBe(1);
    await expectNothingLeft(world);
  });
});

describe('thousands who wait for one key (rules 10 and 12)', () => {
  const CROWD = 5_000;

  async function crowd(
    options: LeaseOptions,
  ): Promise<{ world: World; waits: ReturnType<typeof outcome>[]; held: Lease }> {
    const world = new World();
    const held = await world.rival().acquire('k', { ttl: '1h' });
    const waits = Array.from({ length: CROWD }, () => outcome(world.engine.acquire('k', options)));
    await settle();
    return { world, waits, held };
  }
  const pending = (waits: ReturnType<typeof outcome>[]): number =>
    waits.filter(({ state }) => state === 'pending').length;

  it('end with one signal for all of them', async () => {
    const abort = new AbortController();
    const { world, waits } = await crowd({ wait: '1m', signal: abort.signal });
    abort.abort(new Error('enough'));
    await settle();
    expect([pending(waits), world.engine.awaited]).toEqual([0, 0]);
  });

  it('end at one deadline for all of them, and leave the key to the next', async () => {
    const { world, waits, held } = await crowd({ wait: '30s' });
    await world.clock.advance(31_000);
    expect([pending(waits), world.engine.awaited]).toEqual([0, 0]);
    await held.release();
    const next = outcome(world.engine.acquire('k', { wait: '1s' }));
    await world.clock.advance(2_000);
    expect(next.state).toBe('fulfilled');
  });

  it('end with a shutdown', async () => {
    const { world, waits } = await crowd({ wait: '1m' });
    const closed = outcome(world.engine.close(0, 0));
    await world.clock.advance(10_000);
    expect([closed.state, pending(waits), world.engine.awaited]).toEqual(['fulfilled', 0, 0]);
  });
});

describe('who waits', () => {
  it('asks and is told in its own async context, not in that of who woke it', async () => {
    const requests = new AsyncLocalStorage<string>();
    const world = new World();
    const seen: string[] = [];
    world.engine.events.all.subscribe(({ type }) => {
      if (type === 'acquired') seen.push(`acquired in ${requests.getStore()}`);
    });
    world.store.always('acquire', (pass) => {
      seen.push(`claimed in ${requests.getStore()}`);
      return pass();
    });
    const first = await requests.run('one', () => world.engine.acquire('k'));
    const waiting = requests.run('two', () => outcome(world.engine.acquire('k', { wait: '1m' })));
    await settle();
    seen.length = 0;
    await requests.run('one', () => first.release());
    await settle();
    expect(waiting.state).toBe('fulfilled');
    expect(seen).toEqual(['claimed in two', 'acquired in two']);
  });
});
