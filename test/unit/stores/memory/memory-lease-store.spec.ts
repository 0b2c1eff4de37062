import { describe, expect, it } from '@jest/globals';
import type { Claim, Hold } from '../../../../lib/stores/lease-store.js';
import { MemoryLeaseStore } from '../../../../lib/stores/memory/memory-lease-store.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const TTL = 1_000;

function setUp(): { clock: VirtualClock; store: MemoryLeaseStore } {
  const clock = new VirtualClock();
  return { clock, store: new MemoryLeaseStore(clock) };
}

const claim = (key: string, token: string, more: Partial<Claim> = {}): Claim => ({
  key,
  token,
  ttl: TTL,
  permits: 1,
  instance: 'me',
  patience: 100,
  ...more,
});
const hold = (key: string, token: string): Hold => ({ key, token, ttl: TTL, permits: 1 });

async function fenceOf(store: MemoryLeaseStore, asked: Claim): Promise<number> {
  const answer = await store.acquire(asked);
  if (!answer.granted) throw new Error(`refused as ${answer.reason}`);
  return answer.fence;
}

describe('the memory store', () => {
  it('knows a token again: same fence, one hold, a ttl from now (rule 2)', async () => {
    const { store, clock } = setUp();
    const fence = await fenceOf(store, claim('k', 'a'));
    await clock.advance(600);
    expect(await fenceOf(store, claim('k', 'a'))).toBe(fence);
    expect(await store.inspect('k')).toMatchObject({ freeInMs: TTL, holders: [{ fence }] });
  });

  it('never shortens by a claim or a renewal that comes again (rule 5)', async () => {
    const { store } = setUp();
    await store.acquire(claim('k', 'a'));
    await store.acquire(claim('k', 'a', { ttl: 10 }));
    await store.renew([{ ...hold('k', 'a'), ttl: 10 }]);
    expect((await store.inspect('k'))!.freeInMs).toBe(TTL);
  });

  it('frees a key by its ttl, and never renews it after (rule 5)', async () => {
    const { store, clock } = setUp();
    await store.acquire(claim('k', 'a'));
    await clock.advance(TTL);
    expect(await store.renew([hold('k', 'a')])).toEqual(['gone']);
    expect(await store.release(hold('k', 'a'), {})).toBe(false);
    expect(await store.inspect('k')).toBeNull();
  });

  it('renews many, each with an outcome of its own', async () => {
    const { store } = setUp();
    await store.acquire(claim('a', '1'));
    await store.acquire(claim('b', '2'));
    expect(
      await store.renew([hold('a', '1'), hold('b', 'x'), hold('c', '3'), hold('b', '2')]),
    ).toEqual(['renewed', 'gone', 'gone', 'renewed']);
  });

  it('frees nobody else’s key (rule 7)', async () => {
    const { store } = setUp();
    await store.acquire(claim('k', 'a'));
    expect(await store.release(hold('k', 'b'), {})).toBe(false);
    expect(await store.inspect('k')).not.toBeNull();
  });

  it('has fences that grow strictly, over a clock that is set back (rule 8)', async () => {
    const { store, clock } = setUp();
    let last = 0;
    for (let i = 0; i < 10_000; i++) {
      if (i % 1_000 === 500) clock.stepWall(-3_600_000);
      const fence = await fenceOf(store, claim('k', `t${i}`));
      expect(fence > last).toBe(true);
      expect(Number.isSafeInteger(fence)).toBe(true);
      last = fence;
      await store.release(hold('k', `t${i}`), {});
    }
  });

  it('starts its fences above those of an earlier process (rule 8)', async () => {
    const clock = new VirtualClock();
    const before = await fenceOf(new MemoryLeaseStore(clock), claim('k', 'a'));
    await clock.advance(1);
    expect(await fenceOf(new MemoryLeaseStore(clock), claim('k', 'a'))).toBeGreaterThan(before);
  });

  it('keeps a key taken by nobody for `keepFor`', async () => {
    const { store, clock } = setUp();
    await store.acquire(claim('k', 'a'));
    expect(await store.release(hold('k', 'a'), { keepFor: 500 })).toBe(true);
    expect(await store.acquire(claim('k', 'a'))).toEqual({
      granted: false,
      reason: 'held',
      retryAfterMs: 500,
    });
    expect(await store.release(hold('k', 'a'), {})).toBe(false);
    await clock.advance(500);
    expect(await store.acquire(claim('k', 'b'))).toMatchObject({ granted: true });
  });

  it('remembers what is done for as long as it was told', async () => {
    const { store, clock } = setUp();
    await store.acquire(claim('k', 'a', { once: 'job' }));
    await store.release(hold('k', 'a'), { done: { once: 'job', remember: 500 } });
    expect(await store.acquire(claim('k', 'b', { once: 'job' }))).toEqual({
      granted: false,
      reason: 'done',
    });
    expect(await store.acquire(claim('k', 'c', { once: 'other' }))).toMatchObject({
      granted: true,
    });
    await store.release(hold('k', 'c'), {});
    await clock.advance(500);
    expect(await store.acquire(claim('k', 'b', { once: 'job' }))).toMatchObject({ granted: true });
  });

  it('remembers nothing for a token that did not hold it (rule 7)', async () => {
    const { store } = setUp();
    await store.release(hold('k', 'a'), { done: { once: 'job', remember: 500 } });
    expect(await store.acquire(claim('k', 'b', { once: 'job' }))).toMatchObject({ granted: true });
  });

  it('mixes up no two marks, however key and work are written (rule 14)', async () => {
    const { store } = setUp();
    await store.acquire(claim('a/b', '1', { once: 'c' }));
    await store.release(hold('a/b', '1'), { done: { once: 'c', remember: 500 } });
    expect(await store.acquire(claim('a', '2', { once: 'b/c' }))).toMatchObject({ granted: true });
  });

  it('sweeps what has expired and nobody asked for again', async () => {
    const { store, clock } = setUp();
    for (let i = 0; i < 600; i++) {
      await store.acquire(claim(`crashed${i}`, 'a'));
      await store.acquire(claim(`done${i}`, 'a', { once: 'job' }));
      await store.release(hold(`done${i}`, 'a'), { done: { once: 'job', remember: TTL } });
    }
    expect(store.size).toBe(1_200);
    await clock.advance(TTL);
    for (let i = 0; i < 1_500; i++) {
      await store.acquire(claim('k', `${i}`));
      await store.release(hold('k', `${i}`), {});
    }
    expect(store.size).toBeLessThanOrEqual(1_200);
    for (let i = 0; i < 1_300; i++) await store.acquire(claim(`new${i}`, 'a'));
    // Only the new ones: what had expired went before they were twice as many.
    expect(store.size).toBe(1_300);
  });

  it('sweeps nothing that is still held or remembered', async () => {
    const { store } = setUp();
    await store.acquire(claim('k', 'a', { once: 'job', ttl: 60_000 }));
    await store.acquire(claim('done', 'a', { once: 'job' }));
    await store.release(hold('done', 'a'), { done: { once: 'job', remember: 60_000 } });
    for (let i = 0; i < 5_000; i++) await store.acquire(claim(`other${i}`, 'a'));
    expect(await store.acquire(claim('k', 'b'))).toMatchObject({ reason: 'held' });
    expect(await store.acquire(claim('done', 'b', { once: 'job' }))).toMatchObject({
      reason: 'done',
    });
  });

  it('tells those who watch when a key is freed, until they stop', async () => {
    const { store } = setUp();
    const told: string[] = [];
    const onFree = (): void => void told.push('same callback');
    const stopFirst = await store.watch('k', onFree);
    const stopSecond = await store.watch('k', onFree);
    await store.watch('other', () => told.push('other'));
    const free = async (): Promise<void> => {
      await store.acquire(claim('k', 'a'));
      await store.release(hold('k', 'a'), {});
    };
    await free();
    expect(told).toHaveLength(2);
    await stopFirst();
    await stopFirst();
    await free();
    expect(told).toHaveLength(3);
    await stopSecond();
    await free();
    expect(told).toHaveLength(3);
  });

  it('tells nobody of a key that stays taken, or that was not freed', async () => {
    const { store } = setUp();
    const told: string[] = [];
    await store.watch('k', () => told.push('free'));
    await store.acquire(claim('k', 'a'));
    await store.release(hold('k', 'b'), {});
    await store.release(hold('k', 'a'), { keepFor: 100 });
    expect(told).toEqual([]);
  });

  it('lets a watcher stop while it is told', async () => {
    const { store } = setUp();
    const told: string[] = [];
    const stop = await store.watch('k', () => {
      told.push('first');
      void stop();
    });
    await store.watch('k', () => told.push('second'));
    for (const token of ['a', 'b']) {
      await store.acquire(claim('k', token));
      await store.release(hold('k', token), {});
    }
    expect(told).toEqual(['first', 'second', 'second']);
  });

  it('lists what is not free, by its beginning, in order', async () => {
    const { store, clock } = setUp();
    await store.acquire(claim('a/2', '1'));
    await clock.advance(TTL);
    for (const key of ['b/1', 'a/3', 'a/1']) await store.acquire(claim(key, '1'));
    const keys = async (prefix?: string): Promise<string[]> => {
      const found: string[] = [];
      for await (const { key } of store.list(prefix === undefined ? {} : { prefix }))
        found.push(key);
      return found;
    };
    expect(await keys('a/')).toEqual(['a/1', 'a/3']);
    expect(await keys()).toEqual(['a/1', 'a/3', 'b/1']);
  });

  it('goes on after it was closed: others may share it', async () => {
    const { store } = setUp();
    await store.close();
    expect(await store.acquire(claim('k', 'a'))).toMatchObject({ granted: true });
  });

  it('runs on the clock of the machine when it is given none', async () => {
    const store = new MemoryLeaseStore();
    const before = Date.now() * 1_000;
    expect(await fenceOf(store, claim('k', 'a'))).toBeGreaterThanOrEqual(before);
  });
});
