import { describe, expect, it } from '@jest/globals';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import { LeaseUnavailableException } from '../../../lib/exceptions/lease-unavailable.exception.js';
import { NO_ANSWER, NO_TELLING } from '../../../lib/lease.messages.js';
import { answer, fail, Gate, hang, pass, throwNow } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { outcome, THIRD, TRUSTED, TTL, World } from './world.js';

describe('renewal', () => {
  it('keeps a lease for as long as it is held, under one fence (rules 6 and 8)', async () => {
    const { engine, clock, memory } = new World();
    const lease = await engine.acquire('k');
    const { fence } = lease;
    await clock.advance(100 * TTL);
    expect(lease.isHeld).toBe(true);
    expect(lease.fence).toBe(fence);
    expect((await memory.inspect('test/k'))!.holders[0]!.fence).toBe(fence);
  });

  it.each([0, 0.5, 1])(
    'happens at least once in a third of the ttl, whatever the jitter (%d) (rule 6)',
    async (random) => {
      const { engine, clock, store } = new World({ random: () => random });
      await engine.acquire('k');
      const sent: number[] = [clock.now()];
      store.always('renew', (call) => {
        sent.push(clock.now());
        return call();
      });
      await clock.advance(10 * TTL);
      const gaps = sent.slice(1).map((at, i) => at - sent[i]!);
      expect(gaps.length).toBeGreaterThanOrEqual(30);
      for (const gap of gaps) {
        // A timer counts whole milliseconds, up.
        expect(gap).toBeLessThanOrEqual(THIRD + 1);
        expect(gap).toBeGreaterThanOrEqual(0.8 * THIRD);
      }
    },
  );

  it('is planned from when the last one was sent, not from when it was answered (rule 6)', async () => {
    const { engine, clock, store } = new World();
    await engine.acquire('k');
    const gate = new Gate();
    store.next('renew', gate.reply);
    await clock.advance(THIRD + 900);
    gate.open();
    await settle();
    await clock.advance(THIRD - 900);
    expect(store.renewals).toHaveLength(2);
  });

  it('that finds the key not ours is loss at once: taken (rule 6)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const { signal } = lease;
    await world.steal('k');
    await world.clock.advance(THIRD);
    expect(signal.reason).toMatchObject({ reason: 'taken' });
    expect(world.of('renewal-failed')).toHaveLength(0);
    expect(world.engine.agenda.size).toBe(0);
  });

  it.each([
    ['rejected', fail(new Error('LOADING')), new Error('LOADING')],
    ['answered by a synchronous throw', throwNow(new Error('closed')), new Error('closed')],
    ['answered with nothing', answer(undefined), new Error(NO_TELLING('scripted', undefined))],
    ['answered with too little', answer([]), new Error(NO_TELLING('scripted', undefined))],
    ['answered with nonsense', answer(['OK']), new Error(NO_TELLING('scripted', 'OK'))],
    ['answered with no array', answer('renewed'), new Error(NO_TELLING('scripted', undefined))],
    ['answered with "unknown"', answer(['unknown']), new Error(NO_TELLING('scripted', 'unknown'))],
  ])('%s is retried until trust ends, each failure an event (rule 6)', async (_, script, error) => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    world.store.always('renew', script);
    await world.clock.advance(TRUSTED - 1);
    expect(lease.isHeld).toBe(true);
    const failures = world.of('renewal-failed');
    expect(failures.length).toBeGreaterThanOrEqual(9);
    expect(failures.map((event) => event.failures)).toEqual(failures.map((_event, i) => i + 1));
    expect(failures[0]).toMatchObject({
      key: 'k',
      fence: lease.fence,
      remainingMs: TRUSTED - THIRD,
    });
    for (const event of failures) expect(event.error).toEqual(error);
    await world.clock.advance(1);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['expired']);
    const { length } = world.store.renewals;
    await world.clock.advance(TTL);
    expect(world.store.renewals).toHaveLength(length);
  });

  it('that hangs is given up after a margin and tried again (rule 6)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    world.store.next('renew', hang);
    await world.clock.advance(THIRD + TTL / 6);
    expect(world.of('renewal-failed').map(({ error }) => (error as Error).message)).toEqual([
      NO_ANSWER(TTL / 6),
    ]);
    await world.clock.advance(300);
    expect(world.of('renewed')).toHaveLength(1);
    expect(lease.remaining).toBe(TRUSTED);
  });

  it('is never waited for longer than trust lasts (rule 6)', async () => {
    const world = new World();
    await world.engine.acquire('k');
    world.store.always('renew', hang);
    await world.clock.advance(TRUSTED);
    const bounds = world.of('renewal-failed').map(({ error }) => (error as Error).message);
    expect(bounds).toEqual([NO_ANSWER(1_000), NO_ANSWER(1_000)]);
    await world.clock.advance(TTL);
    expect(world.engine.agenda.size).toBe(0);
  });

  it('that recovers counts its failures anew (rule 6)', async () => {
    const world = new World();
    await world.engine.acquire('k');
    world.store.next(
      'renew',
      fail(new Error('1')),
      fail(new Error('2')),
      pass,
      fail(new Error('3')),
    );
    await world.clock.advance(3 * THIRD);
    expect(world.of('renewal-failed').map(({ failures }) => failures)).toEqual([1, 2, 1]);
  });

  it('that was given up and succeeds while there is trust counts from when it was sent (rule 6)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const gate = new Gate();
    world.store.next('renew', gate.reply);
    world.store.always('renew', hang);
    await world.clock.advance(THIRD + 1_500);
    expect(lease.remaining).toBe(TRUSTED - THIRD - 1_500);
    gate.open();
    await settle();
    expect(lease.remaining).toBe(TRUSTED - 1_500);
  });

  it('that was given up and then says "not yours" is loss at once (rule 6)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const gate = new Gate();
    world.store.next('renew', gate.reply);
    world.store.always('renew', hang);
    await world.steal('k');
    await world.clock.advance(THIRD + 1_500);
    expect(lease.isHeld).toBe(true);
    gate.open();
    await settle();
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['taken']);
  });

  it('of many leases goes to the store in one call (rule 6)', async () => {
    const world = new World();
    for (let i = 0; i < 50; i++) await world.engine.acquire(`k${i}`);
    await world.clock.advance(THIRD);
    expect(world.store.renewals.map((holds) => holds.length)).toEqual([50]);
    expect(world.of('renewed')).toHaveLength(50);
  });

  it('of very many goes in several calls, none too large', async () => {
    const world = new World();
    await Promise.all(Array.from({ length: 600 }, (_, i) => world.engine.acquire(`k${i}`)));
    await world.clock.advance(THIRD);
    expect(world.store.renewals.map((holds) => holds.length)).toEqual([256, 256, 88]);
  });

  it('of leases that are due at about the same time goes in few calls, and none is late (rule 6)', async () => {
    let seed = 1;
    const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
    const { engine, clock, store } = new World({ random });
    const sent = new Map<string, number>();
    let latest = 0;
    store.always('renew', (call) => {
      for (const { key } of store.renewals.at(-1)!) {
        latest = Math.max(latest, clock.now() - sent.get(key)!);
        sent.set(key, clock.now());
      }
      return call();
    });
    for (let i = 0; i < 500; i++) {
      await engine.acquire(`k${i}`);
      sent.set(`test/k${i}`, clock.now());
      await clock.advance(4);
    }
    const before = store.renewals.length;
    await clock.advance(5 * TTL);
    const calls = store.renewals.slice(before);
    const renewals = calls.reduce((sum, holds) => sum + holds.length, 0);
    expect(renewals / calls.length).toBeGreaterThan(20);
    // A timer counts whole milliseconds, up.
    expect(latest).toBeLessThanOrEqual(THIRD + 1);
  });

  it('of one lease in a batch may fail without hurting the others (rule 6)', async () => {
    const world = new World();
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((key) => world.engine.acquire(key)));
    await world.steal('b');
    world.store.next('renew', async (call) => {
      const outcomes = (await call()) as string[];
      const holds = world.store.renewals.at(-1)!;
      return outcomes.map((outcome, i) => (holds[i]!.key === 'test/c' ? 'unknown' : outcome));
    });
    await world.clock.advance(THIRD);
    expect([a!.isHeld, b!.isHeld, c!.isHeld]).toEqual([true, false, true]);
    expect(world.of('renewal-failed').map(({ key }) => key)).toEqual(['c']);
    await world.clock.advance(TTL);
    expect([a!.isHeld, c!.isHeld]).toEqual([true, true]);
  });

  it('in a batch that hangs does not keep others from being renewed (rule 6)', async () => {
    const { engine, store, clock } = new World();
    const hanging = await engine.acquire('hanging');
    await clock.advance(500);
    const other = await engine.acquire('other');
    store.always('renew', (call) =>
      store.renewals.at(-1)!.some(({ key }) => key === 'test/hanging') ? hang(call) : call(),
    );
    await clock.advance(2 * TTL);
    expect([hanging.isHeld, other.isHeld]).toEqual([false, true]);
  });

  it('is one at a time for one lease, asked for or automatic (rule 7)', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k');
    let inFlight = 0;
    let most = 0;
    store.always('renew', async (call) => {
      most = Math.max(most, ++inFlight);
      await new Promise<void>((resolve) => void clock.setTimer(resolve, 400));
      inFlight--;
      return call();
    });
    await clock.advance(THIRD - 100);
    const asked = [lease.renew(), lease.renew(), lease.renew()];
    await clock.advance(2_000);
    await Promise.all(asked);
    await clock.advance(TTL);
    expect(most).toBe(1);
    expect(lease.isHeld).toBe(true);
  });

  it('does not happen with renew: false, and the lease ends with its trust', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { renew: false });
    await world.clock.advance(TRUSTED - 1);
    expect(lease.isHeld).toBe(true);
    await world.clock.advance(1);
    expect(lease.isHeld).toBe(false);
    expect(world.store.renewals).toHaveLength(0);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['expired']);
  });

  it('by hand works with renew: false, and starts no automatic one', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k', { renew: false });
    await clock.advance(3_000);
    await lease.renew();
    expect(lease.remaining).toBe(TRUSTED);
    await clock.advance(TRUSTED);
    expect(lease.isHeld).toBe(false);
    expect(store.renewals).toHaveLength(1);
  });

  it('by hand with renew: false that fails is not tried again by itself', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k', { renew: false });
    store.next('renew', fail(new Error('down')));
    await expect(lease.renew()).rejects.toBeInstanceOf(LeaseUnavailableException);
    await clock.advance(TRUSTED);
    expect(store.renewals).toHaveLength(1);
  });

  it('by hand says when the store gave no answer (rule 9)', async () => {
    const { engine, store } = new World();
    const lease = await engine.acquire('k');
    store.next('renew', fail(new Error('down')));
    await expect(lease.renew()).rejects.toBeInstanceOf(LeaseUnavailableException);
    expect(lease.isHeld).toBe(true);
  });

  it('by hand says when the lease is gone, and it is lost (rule 6)', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    await world.steal('k');
    await expect(lease.renew()).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'taken' });
    expect(lease.isHeld).toBe(false);
  });

  it('by hand after a release rejects, and sends nothing', async () => {
    const { engine, store } = new World();
    const lease = await engine.acquire('k');
    await lease.release();
    await expect(lease.renew()).rejects.toBeInstanceOf(LeaseLostException);
    expect(store.renewals).toHaveLength(0);
  });

  it('by hand that is overtaken by a loss rejects (rule 5)', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k', { renew: false });
    const gate = new Gate();
    store.next('renew', gate.reply);
    await clock.advance(TRUSTED - 500);
    const renewing = outcome(lease.renew());
    await settle();
    clock.freeze(500);
    gate.open();
    await settle();
    expect(renewing.error).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
  });

  it.each([0, -1, '1x', 1e12, Number.NaN])(
    'by hand for a ttl of %p is an error that says so',
    async (ttl) => {
      const { engine, store } = new World();
      const lease = await engine.acquire('k');
      await expect(lease.renew(ttl as never)).rejects.toThrow('"ttl"');
      expect(store.renewals).toHaveLength(0);
      expect(lease.isHeld).toBe(true);
    },
  );

  it('by hand for another ttl sets the pace from then on (rule 6)', async () => {
    const { engine, store, clock } = new World();
    const lease = await engine.acquire('k');
    await lease.renew(600);
    await clock.advance(6_000);
    expect(store.renewals.length).toBeGreaterThanOrEqual(30);
    expect(store.renewals.at(-1)![0]!.ttl).toBe(600);
    expect(lease.isHeld).toBe(true);
  });
});
