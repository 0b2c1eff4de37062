import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { NO_TEST_RUNNER } from '../lease.messages.js';
import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseRecord,
  LeaseStore,
  OnTurn,
  Refusal,
  ReleaseHow,
} from '../stores/lease-store.js';

/**
 * Makes a store for one test. Stores that it makes share their data, as those of several processes do; each test has
 * keys of its own.
 *
 * @publicApi
 */
export type LeaseStoreFactory = () => LeaseStore | Promise<LeaseStore>;

/**
 * Where the suite runs, and what can be done to the store's server. What is left out is not tested.
 *
 * @publicApi
 */
export interface LeaseStoreSuiteOptions {
  /**
   * Of the test runner: Jest's, Vitest's and node:test's will do.
   * @default the global one
   */
  describe?: (name: string, suite: () => void) => unknown;
  /**
   * Of the test runner.
   * @default the global one
   */
  it?: (name: string, test: () => Promise<void>) => unknown;
  /** Empties the server, as a restart without its data would: for a store whose fences grow all the same (rule 8). */
  loseData?: () => Promise<unknown>;
  /** Stops the server so that it keeps its connections, takes requests and answers nothing (SIGSTOP). */
  freeze?: () => Promise<unknown>;
  /** Lets it go on. */
  thaw?: () => Promise<unknown>;
}

/** Long enough to outlive any step of a test, short enough that nothing of it stays behind for long. */
const LONG = 60_000;

/**
 * On a machine that stood still a short ttl may end before the step that was to come sooner. That says nothing of the
 * store, so it is asked again with more time.
 */
const STRETCHES = [1, 5, 25];

/**
 * The contract of a lease store, clause by clause. Every store of this library passes it; run it against your own. Real
 * time passes: a few seconds in all, most of it waiting for short ttls to end.
 *
 * @example
 * ```ts
 * import { describe, it } from 'node:test';
 * import { describeLeaseStore } from 'nestjs-lease/testing';
 *
 * describeLeaseStore('my store', () => new MyLeaseStore(url), { describe, it });
 * ```
 * @publicApi
 */
export function describeLeaseStore(
  name: string,
  factory: LeaseStoreFactory,
  options: LeaseStoreSuiteOptions = {},
): void {
  const { describe, it } = runnerOf(options);
  const promise = (text: string, test: (bench: Bench) => Promise<void>): void => {
    it(text, async () => {
      for (const stretch of STRETCHES) {
        const bench = new Bench(await factory(), factory, stretch);
        try {
          await test(bench);
          return;
        } catch (error) {
          if (!bench.wasTooSlow(error) || stretch === STRETCHES.at(-1)) throw error;
        } finally {
          await bench.close();
        }
      }
    });
  };
  const permitsPromise: typeof promise = (text, test) =>
    promise(text, async (bench) => {
      if (bench.store.limits.permits) await test(bench);
    });
  const oncePromise: typeof promise = (text, test) =>
    promise(text, async (bench) => {
      if (bench.store.limits.once !== false) await test(bench);
    });
  const keepPromise: typeof promise = (text, test) =>
    promise(text, async (bench) => {
      if (bench.store.limits.minHold !== false) await test(bench);
    });
  /** Of a store that frees a key by its ttl. */
  const expiryPromise: typeof promise = (text, test) =>
    promise(text, async (bench) => {
      if (bench.store.limits.expiry !== false) await test(bench);
    });
  const linePromise: typeof promise = (text, test) =>
    promise(text, async (bench) => {
      if (bench.store.enqueue !== undefined) await test(bench);
    });
  const handOverPromise: typeof promise = (text, test) =>
    promise(text, async (bench) => {
      if (bench.store.handOver !== undefined) await test(bench);
    });

  describe(`The contract of a lease store: ${name}`, () => {
    describe('claims', () => {
      promise('grants a free key to one of 100 racing claims (rule 1)', async (bench) => {
        const key = bench.key();
        const answers = await Promise.all(
          Array.from({ length: 100 }, () => bench.store.acquire(bench.claim(key))),
        );
        assert.equal(answers.filter((answer) => answer.granted).length, 1);
        for (const answer of answers) {
          if (!answer.granted) assert.equal(answer.reason, 'held');
        }
      });

      promise('grants with a positive safe integer as the fence (rule 8)', async (bench) => {
        const { fence } = await bench.take(bench.key());
        assert.ok(Number.isSafeInteger(fence) && fence > 0, `fence ${fence}`);
      });

      promise('refuses a held key and says how long it can take (rule 9)', async (bench) => {
        const key = bench.key();
        await bench.take(key, { ttl: LONG });
        const refusal = await bench.refused(key);
        assert.equal(refusal.reason, 'held');
        assertBetween(refusal.retryAfterMs, LONG - 10_000, LONG);
      });

      promise(
        'recognises a claim that comes again: held once, under the same fence (rule 2)',
        async (bench) => {
          const claim = bench.claim(bench.key());
          const first = granted(await bench.store.acquire(claim));
          const second = granted(await bench.store.acquire(claim));
          assert.equal(second.fence, first.fence);
          assert.equal((await bench.record(claim.key)).holders.length, 1);
        },
      );

      promise('a claim that comes again holds for a ttl from then (rule 2)', async (bench) => {
        const claim = bench.claim(bench.key(), { ttl: bench.shortTtl });
        await bench.store.acquire(claim);
        await bench.store.acquire({ ...claim, ttl: LONG });
        assertBetween((await bench.record(claim.key)).freeInMs, LONG - 10_000, LONG);
      });

      promise('a claim that comes again never shortens (rule 2)', async (bench) => {
        const claim = bench.claim(bench.key(), { ttl: LONG });
        await bench.store.acquire(claim);
        await bench.store.acquire({ ...claim, ttl: bench.shortTtl });
        assertBetween((await bench.record(claim.key)).freeInMs, LONG - 10_000, LONG);
      });

      expiryPromise('frees a key by itself after its ttl, and not before', async (bench) => {
        const key = bench.key();
        const since = performance.now();
        await bench.take(key, { ttl: bench.shortTtl });
        assert.equal((await bench.store.acquire(bench.claim(key))).granted, false);
        await bench.untilFree(key);
        assertBetween(performance.now() - since, bench.shortTtl - 2, Infinity);
      });

      expiryPromise('a token that has expired is a stranger when it comes again', async (bench) => {
        const claim = bench.claim(bench.key(), { ttl: bench.shortTtl });
        const before = granted(await bench.store.acquire(claim));
        await bench.untilFree(claim.key);
        const after = granted(await bench.store.acquire(claim));
        assert.ok(after.fence > before.fence);
      });
    });

    describe('limits', () => {
      expiryPromise('a ttl of the least that it has is granted, and ends', async (bench) => {
        const { minTtl } = bench.store.limits;
        const since = performance.now();
        const { key } = await bench.take(bench.key(), { ttl: minTtl });
        await bench.untilFree(key);
        assertBetween(performance.now() - since, minTtl - 2, Infinity);
      });

      expiryPromise('a ttl of the most that it has is granted, and lasts', async (bench) => {
        const { maxTtl } = bench.store.limits;
        const { key } = await bench.take(bench.key(), { ttl: maxTtl });
        assertBetween((await bench.record(key)).freeInMs, maxTtl - 10_000, maxTtl);
        assertBetween((await bench.refused(key)).retryAfterMs, maxTtl - 10_000, maxTtl);
      });
    });

    describe('renewal', () => {
      promise('prolongs what is held to a ttl from now', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: bench.shortTtl });
        assert.deepEqual(await bench.store.renew([{ ...held, ttl: LONG }]), ['renewed']);
        assertBetween((await bench.record(held.key)).freeInMs, LONG - 10_000, LONG);
      });

      promise('never shortens (rule 5)', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        assert.deepEqual(await bench.store.renew([{ ...held, ttl: bench.shortTtl }]), ['renewed']);
        assertBetween((await bench.record(held.key)).freeInMs, LONG - 10_000, LONG);
      });

      promise('never creates a key that nobody holds (rule 5)', async (bench) => {
        const stranger = bench.hold(bench.key());
        assert.deepEqual(await bench.store.renew([stranger]), ['gone']);
        assert.equal(await bench.store.inspect(stranger.key), null);
      });

      expiryPromise('never re-creates a key that has expired (rule 5)', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: bench.shortTtl });
        await bench.untilFree(held.key);
        assert.deepEqual(await bench.store.renew([held]), ['gone']);
        assert.equal(await bench.store.inspect(held.key), null);
      });

      promise('never re-creates a key that was released (rule 5)', async (bench) => {
        const held = await bench.take(bench.key());
        await bench.store.release(held, {});
        assert.deepEqual(await bench.store.renew([held]), ['gone']);
        assert.equal(await bench.store.inspect(held.key), null);
      });

      promise('is only for the token that holds the key (rule 2)', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        assert.deepEqual(await bench.store.renew([bench.hold(held.key, { ttl: 2 * LONG })]), [
          'gone',
        ]);
        assertBetween((await bench.record(held.key)).freeInMs, 0, LONG);
      });

      promise('tells of many holds at once what became of each, in order', async (bench) => {
        const mine = await bench.take(bench.key());
        const released = await bench.take(bench.key());
        await bench.store.release(released, {});
        const others = await bench.take(bench.key());
        const mineToo = await bench.take(bench.key());
        assert.deepEqual(
          await bench.store.renew([mine, released, bench.hold(others.key), mineToo]),
          ['renewed', 'gone', 'gone', 'renewed'],
        );
      });

      promise('of nothing is nothing', async (bench) => {
        assert.deepEqual(await bench.store.renew([]), []);
      });
    });

    describe('release', () => {
      promise('frees the key at once and says so', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        assert.equal(await bench.store.release(held, {}), true);
        await bench.take(held.key);
      });

      promise('a second time says that there was nothing to free (rule 7)', async (bench) => {
        const held = await bench.take(bench.key());
        await bench.store.release(held, {});
        assert.equal(await bench.store.release(held, {}), false);
      });

      promise("never frees somebody else's lease (rule 7)", async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        assert.equal(await bench.store.release(bench.hold(held.key), {}), false);
        assert.deepEqual(await bench.store.renew([held]), ['renewed']);
      });

      expiryPromise('by an expired holder says that it was not its own any more', async (bench) => {
        const expired = await bench.take(bench.key(), { ttl: bench.shortTtl });
        await bench.untilFree(expired.key);
        await bench.take(expired.key, { ttl: LONG });
        assert.equal(await bench.store.release(expired, {}), false);
      });

      expiryPromise(
        'by an expired holder leaves a key free that nobody has taken',
        async (bench) => {
          const expired = await bench.take(bench.key(), { ttl: bench.shortTtl });
          await until(async () => (await bench.store.inspect(expired.key)) === null);
          await bench.store.release(expired, {});
          const { fence } = await bench.take(expired.key);
          assert.ok(fence > expired.fence);
        },
      );

      permitsPromise(
        'by an expired holder takes nothing from who shares the key since (rules 1 and 7)',
        async (bench) => {
          for (const handsOver of [false, true]) {
            const expired = await bench.take(bench.key(), { ttl: bench.shortTtl });
            await until(async () => (await bench.store.inspect(expired.key)) === null);
            const sharing = await bench.take(expired.key, { permits: 2, ttl: LONG });
            if (!handsOver) await bench.store.release(expired, {});
            else await bench.store.handOver?.(expired, bench.claim(expired.key), () => {});
            assert.equal((await bench.refused(expired.key)).reason, 'held');
            assert.deepEqual(await bench.store.renew([sharing]), ['renewed']);
          }
        },
      );

      expiryPromise('by an expired holder does not touch its successor (rule 7)', async (bench) => {
        const expired = await bench.take(bench.key(), { ttl: bench.shortTtl });
        await bench.untilFree(expired.key);
        const successor = await bench.take(expired.key, { ttl: LONG });
        assert.equal(await bench.store.release(expired, { keepFor: LONG }), false);
        assert.deepEqual(await bench.store.renew([successor]), ['renewed']);
      });
    });

    describe('fences', () => {
      promise('grow with every grant of a key (rule 8)', async (bench) => {
        const key = bench.key();
        let last = 0;
        for (let i = 0; i < 200; i++) {
          const held = await bench.take(key);
          assert.ok(held.fence > last, `${held.fence} after ${last}`);
          last = held.fence;
          await bench.store.release(held, {});
        }
      });

      expiryPromise('grow over an expiry too (rule 8)', async (bench) => {
        const expired = await bench.take(bench.key(), { ttl: bench.shortTtl });
        await bench.untilFree(expired.key);
        const successor = await bench.take(expired.key);
        assert.ok(successor.fence > expired.fence);
      });

      promise('stay the same over renewals (rule 8)', async (bench) => {
        const held = await bench.take(bench.key());
        await bench.store.renew([held]);
        assert.equal((await bench.record(held.key)).holders[0]?.fence, held.fence);
      });

      promise('of a holder are not touched by refused claims (rule 8)', async (bench) => {
        const held = await bench.take(bench.key());
        await Promise.all(Array.from({ length: 20 }, () => bench.refused(held.key)));
        assert.equal((await bench.record(held.key)).holders[0]?.fence, held.fence);
      });
    });

    describe('permits', () => {
      permitsPromise(
        'are given to as many as there are, of 100 that race (rule 1)',
        async (bench) => {
          const key = bench.key();
          const answers = await Promise.all(
            Array.from({ length: 100 }, () =>
              bench.store.acquire(bench.claim(key, { permits: 3 })),
            ),
          );
          const fences = answers.flatMap((answer) => (answer.granted ? [answer.fence] : []));
          assert.equal(fences.length, 3);
          assert.equal(new Set(fences).size, 3, 'each has a fence of its own');
        },
      );

      permitsPromise('are counted by each claim for itself', async (bench) => {
        const key = bench.key();
        await bench.take(key, { permits: 3 });
        await bench.take(key, { permits: 3 });
        assert.equal((await bench.refused(key, { permits: 2 })).reason, 'held');
        await bench.take(key, { permits: 3 });
      });

      permitsPromise('of a key are refused while somebody has it alone', async (bench) => {
        const alone = await bench.take(bench.key(), { ttl: LONG });
        const refusal = await bench.refused(alone.key, { permits: 5 });
        assert.equal(refusal.reason, 'held');
        assertBetween(refusal.retryAfterMs, LONG - 10_000, LONG);
        await bench.store.release(alone, {});
        await bench.take(alone.key, { permits: 5 });
      });

      permitsPromise('keep away who wants the key alone, until the last is gone', async (bench) => {
        const key = bench.key();
        const first = await bench.take(key, { permits: 2, ttl: LONG });
        const last = await bench.take(key, { permits: 2, ttl: 2 * LONG });
        const refusal = await bench.refused(key);
        assert.equal(refusal.reason, 'held');
        assertBetween(refusal.retryAfterMs, 2 * LONG - 10_000, 2 * LONG);
        await bench.store.release(last, {});
        assertBetween((await bench.refused(key)).retryAfterMs, LONG - 10_000, LONG);
        await bench.store.release(first, {});
        await bench.take(key);
      });

      permitsPromise('that expired keep nobody away', async (bench) => {
        const key = bench.key();
        await bench.take(key, { permits: 2, ttl: bench.shortTtl });
        await bench.take(key, { permits: 2, ttl: bench.shortTtl });
        await bench.untilFree(key, { permits: 2 });
        await bench.untilFree(key);
      });

      permitsPromise(
        'when all taken, tell when enough of them can be free (rule 9)',
        async (bench) => {
          const key = bench.key();
          for (const minutes of [3, 1, 4, 2]) {
            await bench.take(key, { permits: 4, ttl: minutes * LONG });
          }
          const wait = async (permits: number): Promise<number | undefined> =>
            (await bench.refused(key, { permits })).retryAfterMs;
          assertBetween(await wait(4), LONG - 10_000, LONG);
          assertBetween(await wait(3), 2 * LONG - 10_000, 2 * LONG);
          assertBetween(await wait(2), 3 * LONG - 10_000, 3 * LONG);
          assertBetween(await wait(1), 4 * LONG - 10_000, 4 * LONG);
        },
      );

      permitsPromise('are recognised when claimed again (rule 2)', async (bench) => {
        const claim = bench.claim(bench.key(), { permits: 2 });
        const first = granted(await bench.store.acquire(claim));
        await bench.take(claim.key, { permits: 2 });
        assert.equal(granted(await bench.store.acquire(claim)).fence, first.fence);
        assert.equal((await bench.record(claim.key)).holders.length, 2);
      });

      permitsPromise('are renewed and released each by its own token', async (bench) => {
        const key = bench.key();
        const one = await bench.take(key, { permits: 2, ttl: bench.shortTtl });
        const other = await bench.take(key, { permits: 2, ttl: LONG });
        const stranger = bench.hold(key, { permits: 2 });
        const longer = { ...one, ttl: 2 * LONG };
        assert.deepEqual(await bench.store.renew([longer, stranger, other]), [
          'renewed',
          'gone',
          'renewed',
        ]);
        assertBetween((await bench.record(key)).freeInMs, LONG - 10_000, LONG);
        assert.equal(await bench.store.release(stranger, {}), false);
        assert.equal(await bench.store.release(other, {}), true);
        assert.equal(await bench.store.release(other, {}), false);
        assert.deepEqual(await bench.store.renew([one, other]), ['renewed', 'gone']);
      });

      permitsPromise(
        'never shortened by a renewal, never re-created by one (rule 5)',
        async (bench) => {
          const key = bench.key();
          const long = await bench.take(key, { permits: 2, ttl: LONG });
          await bench.store.renew([{ ...long, ttl: bench.shortTtl }]);
          assertBetween((await bench.record(key)).freeInMs, LONG - 10_000, LONG);
          await bench.store.release(long, {});
          assert.deepEqual(await bench.store.renew([long]), ['gone']);
          assert.equal(await bench.store.inspect(key), null);
        },
      );

      permitsPromise(
        'and claims for one alone share one order of fences (rule 8)',
        async (bench) => {
          const key = bench.key();
          let last = 0;
          for (const permits of [1, 3, 1, 3, 3, 1]) {
            const held = await bench.take(key, { permits });
            assert.ok(held.fence > last);
            last = held.fence;
            await bench.store.release(held, {});
          }
        },
      );
    });

    describe('units of work', () => {
      oncePromise('are refused as done once a release said so', async (bench) => {
        const held = await bench.take(bench.key(), { once: 'tick 1' });
        await bench.store.release(held, { done: { once: 'tick 1', remember: LONG } });
        assert.equal((await bench.refused(held.key, { once: 'tick 1' })).reason, 'done');
      });

      oncePromise('are known apart, by their name and by their key', async (bench) => {
        const held = await bench.take(bench.key(), { once: 'tick 1' });
        await bench.store.release(held, { done: { once: 'tick 1', remember: LONG } });
        const next = await bench.take(held.key, { once: 'tick 2' });
        await bench.store.release(next, {});
        await bench.store.release(await bench.take(held.key), {});
        await bench.take(bench.key(), { once: 'tick 1' });
      });

      oncePromise('are not done when the release says nothing of it', async (bench) => {
        const held = await bench.take(bench.key(), { once: 'tick' });
        await bench.store.release(held, {});
        await bench.take(held.key, { once: 'tick' });
      });

      oncePromise('are not done by a holder that had lost its lease', async (bench) => {
        if (bench.store.limits.expiry === false) return;
        const expired = await bench.take(bench.key(), { once: 'tick', ttl: bench.shortTtl });
        await bench.untilFree(expired.key);
        const done = { once: 'tick', remember: LONG };
        assert.equal(await bench.store.release(expired, { done }), false);
        await bench.take(expired.key, { once: 'tick' });
      });

      oncePromise('are forgotten after their time', async (bench) => {
        const held = await bench.take(bench.key(), { once: 'tick' });
        await bench.store.release(held, { done: { once: 'tick', remember: bench.shortTtl } });
        await bench.untilFree(held.key, { once: 'tick' });
      });

      permitsPromise(
        'done by another are still held by who holds already (rule 2)',
        async (bench) => {
          const claim = bench.claim(bench.key(), { once: 'tick', permits: 2 });
          const { fence } = granted(await bench.store.acquire(claim));
          const other = await bench.take(claim.key, { once: 'tick', permits: 2 });
          await bench.store.release(other, { done: { once: 'tick', remember: LONG } });
          assert.equal(granted(await bench.store.acquire(claim)).fence, fence);
        },
      );

      permitsPromise('may be done by the holder of a permit', async (bench) => {
        const held = await bench.take(bench.key(), { once: 'tick', permits: 2 });
        await bench.store.release(held, { done: { once: 'tick', remember: LONG } });
        const refusal = await bench.refused(held.key, { once: 'tick', permits: 2 });
        assert.equal(refusal.reason, 'done');
      });
    });

    for (const permits of [1, 2]) {
      const kept = permits === 1 ? keepPromise : permitsPromise;
      describe(`a place kept after its release, with permits: ${permits}`, () => {
        const keep = async (bench: Bench, keepFor: number, ttl = LONG): Promise<Held> => {
          const held = await bench.take(bench.key(), { permits, ttl });
          assert.equal(await bench.store.release(held, { keepFor }), true);
          return held;
        };

        kept('stays taken for that long', async (bench) => {
          const { key } = await keep(bench, LONG, bench.shortTtl);
          const refusal = await bench.refused(key);
          assert.equal(refusal.reason, 'held');
          assertBetween(refusal.retryAfterMs, LONG - 10_000, LONG);
        });

        kept('is free afterwards, however long its ttl was', async (bench) => {
          const { key } = await keep(bench, bench.shortTtl, LONG);
          await bench.untilFree(key);
        });

        kept('belongs to nobody: its old token neither renews nor releases', async (bench) => {
          const held = await keep(bench, LONG);
          assert.deepEqual(await bench.store.renew([held]), ['gone']);
          assert.equal(await bench.store.release(held, {}), false);
          assert.equal((await bench.refused(held.key)).reason, 'held');
        });

        kept('is shown without a holder', async (bench) => {
          const { key } = await keep(bench, LONG);
          const record = await bench.record(key);
          assert.deepEqual(record.holders, []);
          assertBetween(record.freeInMs, LONG - 10_000, LONG);
        });

        kept('can be of work that is done', async (bench) => {
          if (bench.store.limits.once === false) return;
          const held = await bench.take(bench.key(), { permits, once: 'tick' });
          const done = { once: 'tick', remember: LONG };
          await bench.store.release(held, { keepFor: LONG, done });
          assert.equal((await bench.refused(held.key, { once: 'tick' })).reason, 'done');
          assert.equal((await bench.refused(held.key)).reason, 'held');
        });
      });
    }

    permitsPromise('a kept permit counts as one of the permits', async (bench) => {
      const key = bench.key();
      const first = await bench.take(key, { permits: 2 });
      const second = await bench.take(key, { permits: 2, ttl: LONG });
      await bench.store.release(first, { keepFor: 2 * LONG });
      assert.equal((await bench.refused(key, { permits: 2 })).reason, 'held');
      await bench.store.release(second, {});
      await bench.take(key, { permits: 2 });
    });

    describe('keys are data (rule 14)', () => {
      promise('of any shape are keys, each its own', async (bench) => {
        const keys = HOSTILE.map((hostile) => bench.key(hostile));
        const held = await Promise.all(keys.map((key) => bench.take(key, { ttl: LONG })));
        for (const { key, fence } of held) {
          assert.equal((await bench.refused(key)).reason, 'held');
          assert.deepEqual(
            (await bench.record(key)).holders.map((holder) => holder.fence),
            [fence],
            key,
          );
        }
        for (const one of held) assert.equal(await bench.store.release(one, {}), true, one.key);
      });

      oncePromise('of any shape name units of work, each its own', async (bench) => {
        const key = bench.key();
        for (const once of HOSTILE) {
          const held = await bench.take(key, { once });
          await bench.store.release(held, { done: { once, remember: LONG } });
          assert.equal((await bench.refused(key, { once })).reason, 'done', once);
        }
      });

      permitsPromise('of any shape have permits', async (bench) => {
        for (const hostile of HOSTILE) {
          const key = bench.key(hostile);
          await bench.take(key, { permits: 2 });
          await bench.take(key, { permits: 2 });
          assert.equal((await bench.refused(key, { permits: 2 })).reason, 'held', key);
        }
      });

      promise('with the parts of another key in them do not meet it', async (bench) => {
        const base = bench.key('a');
        await bench.take(base);
        for (const near of NEAR.map((suffix) => base + suffix)) await bench.take(near);
        assert.deepEqual(await bench.store.renew([bench.hold(base)]), ['gone']);
      });

      promise('are as opaque before the first slash as after it', async (bench) => {
        const own = bench.own;
        const keys = [own, `${own}/`, `/${own}`, `{${own}`, `${own}}`, `a{${own}/b`, `a/${own}`];
        const more = [`a}${own}/b`, `%7B${own}`, `a*/${own}`, `${own}:b`, `${own}/:b`, `{${own}}`];
        for (const key of [...keys, ...more]) await bench.take(key, { ttl: bench.shortTtl });
      });
    });

    describe('looking', () => {
      promise('at a free key finds nothing', async (bench) => {
        assert.equal(await bench.store.inspect(bench.key()), null);
      });

      promise('at a held key tells who, since when and for how long', async (bench) => {
        const before = Date.now();
        const held = await bench.take(bench.key(), { ttl: LONG, instance: 'host:1:ü' });
        const { key, holders, freeInMs } = await bench.record(held.key);
        assert.equal(key, held.key);
        assertBetween(freeInMs, LONG - 10_000, LONG);
        assert.equal(holders.length, 1);
        const [holder] = holders;
        assert.equal(holder!.instance, 'host:1:ü');
        assert.equal(holder!.fence, held.fence);
        assertBetween(holder!.expiresInMs, LONG - 10_000, LONG);
        // For people: it may be another machine's clock.
        assertBetween(holder!.since.getTime(), before - 60_000, Date.now() + 60_000);
      });

      permitsPromise('at permits tells of every holder', async (bench) => {
        const key = bench.key();
        const one = await bench.take(key, { permits: 2, ttl: LONG, instance: 'a:1' });
        const two = await bench.take(key, { permits: 2, ttl: 2 * LONG, instance: 'b' });
        const { holders, freeInMs } = await bench.record(key);
        assert.deepEqual(
          holders.map(({ instance, fence }) => ({ instance, fence })),
          [
            { instance: 'a:1', fence: one.fence },
            { instance: 'b', fence: two.fence },
          ],
        );
        assertBetween(freeInMs, LONG - 10_000, LONG);
      });

      for (const permits of [1, 2]) {
        const seen = permits === 1 ? promise : permitsPromise;
        seen(`never shows a whole owner token, permits: ${permits} (rule 15)`, async (bench) => {
          const held = await bench.take(bench.key(), { permits });
          const record = await bench.record(held.key);
          const { owner } = record.holders[0]!;
          assert.ok(owner.length > 0 && held.token.startsWith(owner), 'tells acquisitions apart');
          assert.ok(!JSON.stringify(record).includes(held.token.slice(0, 18)), 'and no more');
        });
      }

      promise('finds nothing after a release and after an expiry', async (bench) => {
        const released = await bench.take(bench.key(), { ttl: LONG });
        await bench.store.release(released, {});
        assert.equal(await bench.store.inspect(released.key), null);
        if (bench.store.limits.expiry === false) return;
        const expiring = await bench.take(bench.key(), { ttl: bench.shortTtl });
        await until(async () => (await bench.store.inspect(expiring.key)) === null);
      });

      promise('at all keys finds those that are not free, by their beginning', async (bench) => {
        const held = await bench.take(bench.key('a'));
        const kept = await bench.take(bench.key('b'));
        if (bench.store.limits.minHold !== false) {
          await bench.store.release(kept, { keepFor: LONG });
        }
        const released = await bench.take(bench.key('c'));
        const done = { once: 'tick', remember: LONG };
        await bench.store.release(released, bench.store.limits.once === false ? {} : { done });
        const shared = bench.store.limits.permits ? [bench.key('d')] : [];
        for (const key of shared) {
          await bench.take(key, { permits: 2 });
          await bench.take(key, { permits: 2 });
        }
        assert.deepEqual(await bench.list(bench.prefix), [held.key, kept.key, ...shared]);
        assert.deepEqual(await bench.list(bench.key('b')), [kept.key]);
        assert.deepEqual(await bench.list(bench.key('nobody')), []);
      });

      promise('for a beginning takes no character of it for a pattern (rule 14)', async (bench) => {
        const keys = HOSTILE.map((hostile) => bench.key(hostile)).toSorted();
        for (const key of keys) await bench.take(key, { ttl: LONG });
        assert.deepEqual(await bench.list(bench.prefix), keys);
        for (const key of keys) {
          const found = keys.filter((other) => other.startsWith(key));
          assert.deepEqual(await bench.list(key), found, key);
        }
      });

      promise('without a beginning finds every key', async (bench) => {
        const held = await bench.take(bench.key());
        const plain = await bench.take(`${bench.own}-plain`);
        const found = await bench.list();
        assert.ok(found.includes(held.key) && found.includes(plain.key));
        assert.deepEqual(await bench.list(bench.own), [plain.key]);
      });
    });

    describe('waiting in line', () => {
      promise('or watching is there where waiters are told', async ({ store }) => {
        const tells = store.enqueue !== undefined || store.watch !== undefined;
        assert.equal(tells || !store.limits.push, true);
      });

      linePromise('is not needed for a key that is free', async (bench) => {
        const waiter = bench.waiter(bench.key());
        const { fence } = granted(await waiter.ask());
        assert.deepEqual(await bench.store.renew([waiter.claim]), ['renewed']);
        assert.equal((await bench.record(waiter.claim.key)).holders[0]?.fence, fence);
      });

      linePromise('is for who is refused, and is told how long it can take', async (bench) => {
        const { key } = await bench.take(bench.key(), { ttl: LONG });
        const refusal = await bench.waiter(key).stand();
        assert.equal(refusal.reason, 'held');
        assertBetween(refusal.retryAfterMs, LONG - 10_000, LONG);
      });

      linePromise('ends with the key when its holder releases it (rule 10)', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        const waiter = bench.waiter(held.key);
        await waiter.stand();
        assert.equal(await bench.store.release(held, {}), true);
        assert.ok((await waiter.turn()).fence > held.fence, 'the fence grows (rule 8)');
      });

      linePromise('ends with a key that is held like any other (rule 1)', async (bench) => {
        const held = await bench.take(bench.key());
        const waiter = bench.waiter(held.key, { ttl: LONG, instance: 'next in line' });
        await waiter.stand();
        await bench.store.release(held, {});
        const { fence } = await waiter.turn();
        assertBetween((await bench.refused(held.key)).retryAfterMs, LONG - 10_000, LONG);
        const { holders } = await bench.record(held.key);
        assert.deepEqual(
          holders.map((holder) => [holder.instance, holder.fence]),
          [['next in line', fence]],
        );
        assert.deepEqual(await bench.store.renew([held, waiter.claim]), ['gone', 'renewed']);
        assert.equal(await bench.store.release(held, {}), false);
        assert.equal(await bench.store.release(waiter.claim, {}), true);
        await bench.take(held.key);
      });

      linePromise('is in the order in which they began to wait (rule 10)', async (bench) => {
        const held = await bench.take(bench.key());
        const stores = [bench.store, await bench.another(), await bench.another()];
        const waited = [20_000, 40_000, 10_000, 30_000];
        const waiters = waited.map((ms, i) => bench.waiter(held.key, {}, ms, stores[i % 3]));
        for (const waiter of waiters) await waiter.stand();
        const served: Waiter[] = [];
        await bench.store.release(held, {});
        while (served.length < waiters.length) {
          const next = await until(() => waiters.find((one) => one.grant && !served.includes(one)));
          served.push(next);
          await next.store.release(next.claim, {});
        }
        assert.deepEqual(
          served.map((waiter) => waited[waiters.indexOf(waiter)]),
          waited.toSorted((a, b) => b - a),
        );
      });

      /** Held by one who was in line itself, so that the others stand there before its short ttl begins. */
      const soonExpired = async (bench: Bench, ...others: Waiter[]): Promise<void> => {
        const [{ claim }] = others as [Waiter];
        const held = await bench.take(claim.key);
        const brief = bench.waiter(claim.key, { ttl: bench.shortTtl }, LONG);
        for (const waiter of [...others, brief]) await waiter.stand();
        await bench.store.release(held, {});
        await brief.turn();
      };

      linePromise('is not overtaken by a claim that does not wait (rule 10)', async (bench) => {
        const waiter = bench.waiter(bench.key(), {}, 0, await bench.another());
        await soonExpired(bench, waiter);
        const { key } = waiter.claim;
        await until(async () => (await bench.store.inspect(key)) === null);
        assert.equal((await bench.refused(key)).reason, 'held');
        await waiter.turn();
      });

      linePromise('keeps the place of who asks again (rule 10)', async (bench) => {
        const held = await bench.take(bench.key());
        const [second, first] = [1_000, 2_000].map((ms) => bench.waiter(held.key, {}, ms));
        await second!.stand();
        await first!.stand();
        await first!.stand();
        await second!.stand();
        await bench.store.release(held, {});
        await first!.turn();
        assert.equal(second!.grant, undefined);
      });

      linePromise('recognises who asks again after its turn came (rule 2)', async (bench) => {
        const held = await bench.take(bench.key());
        const waiter = bench.waiter(held.key);
        await waiter.stand();
        await bench.store.release(held, {});
        const { fence } = await waiter.turn();
        assert.equal(granted(await waiter.ask()).fence, fence);
        assert.equal((await bench.record(held.key)).holders.length, 1);
      });

      linePromise(
        'gives one turn, be it told or answered or both (rules 1 and 2)',
        async (bench) => {
          const key = bench.key();
          let holder = await bench.take(key);
          for (let i = 0; i < 30; i++) {
            const waiter = bench.waiter(key, {}, 0, await bench.another(i % 2));
            await waiter.stand();
            const [, answer] = await Promise.all([bench.store.release(holder, {}), waiter.ask()]);
            const { fence } = granted(answer.granted ? answer : await waiter.turn());
            // Whatever is still to be told has been by now.
            await waiter.store.inspect(key);
            await bench.store.inspect(key);
            assert.deepEqual(await bench.store.renew([waiter.claim]), ['renewed']);
            holder = { ...waiter.claim, granted: true, fence };
          }
        },
      );

      linePromise('ends for who gives up, and leaves nothing behind (rule 10)', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        const [leaver, next] = [2_000, 1_000].map((ms) => bench.waiter(held.key, {}, ms));
        await leaver!.stand();
        await next!.stand();
        assert.equal(await bench.store.release(leaver!.claim, {}), false);
        assert.deepEqual(await bench.store.renew([held]), ['renewed']);
        await bench.store.release(held, {});
        await next!.turn();
        assert.equal(leaver!.grant, undefined);
        await bench.store.release(next!.claim, {});
        assert.equal(await bench.store.inspect(held.key), null);
      });

      linePromise('ends for who gives up after its turn came (rule 7)', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        const waiter = bench.waiter(held.key);
        await waiter.stand();
        await bench.store.release(held, {});
        await waiter.turn();
        assert.equal(await bench.store.release(waiter.claim, {}), true);
        assert.equal(await bench.store.inspect(held.key), null);
      });

      linePromise('ends with the key of a holder that expired (rule 10)', async (bench) => {
        const key = bench.key();
        const [second, first] = [1_000, 2_000].map((ms) => bench.waiter(key, {}, ms));
        await soonExpired(bench, second!, first!);
        await until(async () => (await second!.ask()).granted || first!.grant !== undefined);
        await first!.turn();
        assert.equal((await second!.ask()).granted, false);
      });

      linePromise('lasts while a place is kept after its release', async (bench) => {
        const held = await bench.take(bench.key());
        const waiter = bench.waiter(held.key);
        await waiter.stand();
        await bench.store.release(held, { keepFor: LONG });
        const refusal = await waiter.ask();
        assert.ok(!refusal.granted && refusal.reason === 'held');
        assertBetween(refusal.retryAfterMs, LONG - 10_000, LONG);
        assert.equal(waiter.grant, undefined);
      });

      linePromise('is told of work that is done meanwhile', async (bench) => {
        const held = await bench.take(bench.key(), { once: 'tick' });
        const waiter = bench.waiter(held.key, { once: 'tick' }, 0, await bench.another());
        await waiter.stand();
        const calls = waiter.calls;
        await bench.store.release(held, { done: { once: 'tick', remember: LONG } });
        await until(() => waiter.calls > calls);
        const refusal = await waiter.ask();
        assert.ok(!refusal.granted && refusal.reason === 'done');
        assert.equal(waiter.grant, undefined, 'never granted');
      });

      linePromise('is told of work that was not done by who had begun it', async (bench) => {
        const held = await bench.take(bench.key(), { once: 'tick' });
        const waiter = bench.waiter(held.key, { once: 'tick' }, 0, await bench.another());
        await waiter.stand();
        const calls = waiter.calls;
        await bench.store.release(held, {});
        await until(() => waiter.calls > calls);
        granted(await waiter.ask());
      });

      linePromise('is told of a permit that is released', async (bench) => {
        if (!bench.store.limits.permits) return;
        const key = bench.key();
        const held = await bench.take(key, { permits: 2 });
        await bench.take(key, { permits: 2 });
        const waiter = bench.waiter(key, { permits: 2 }, 0, await bench.another());
        await waiter.stand();
        const calls = waiter.calls;
        await bench.store.release(held, {});
        await until(() => waiter.calls > calls);
        granted(await waiter.ask());
        assert.equal((await bench.record(key)).holders.length, 2);
      });

      linePromise('for a key alone lasts until its last permit is released', async (bench) => {
        if (!bench.store.limits.permits) return;
        const key = bench.key();
        const held = [await bench.take(key, { permits: 2 }), await bench.take(key, { permits: 2 })];
        const waiter = bench.waiter(key, {}, 0, await bench.another());
        await waiter.stand();
        await bench.store.release(held[0]!, {});
        assert.equal((await waiter.ask()).granted, false);
        await bench.store.release(held[1]!, {});
        await waiter.turn();
      });
    });

    describe('handing a key over', () => {
      handOverPromise('frees and grants it in one step, with a higher fence', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        const next = bench.waiter(held.key, { ttl: LONG });
        const { freed, answer } = await next.handOver(held);
        assert.equal(freed, true);
        assert.ok(granted(answer).fence > held.fence);
        assert.deepEqual(await bench.store.renew([held, next.claim]), ['gone', 'renewed']);
        assertBetween((await bench.refused(held.key)).retryAfterMs, LONG - 10_000, LONG);
      });

      handOverPromise('that was free by then grants it all the same', async (bench) => {
        const held = await bench.take(bench.key());
        await bench.store.release(held, {});
        const { freed, answer } = await bench.waiter(held.key).handOver(held);
        assert.equal(freed, false);
        granted(answer);
      });

      handOverPromise('that expired grants it all the same', async (bench) => {
        const held = await bench.take(bench.key(), { ttl: bench.shortTtl });
        await until(async () => (await bench.store.inspect(held.key)) === null);
        const { answer } = await bench.waiter(held.key).handOver(held);
        assert.ok(granted(answer).fence > held.fence);
      });

      handOverPromise("never frees somebody else's lease (rule 7)", async (bench) => {
        const held = await bench.take(bench.key(), { ttl: LONG });
        const { freed, answer } = await bench.waiter(held.key).handOver(bench.hold(held.key));
        assert.equal(freed, false);
        assert.ok(!answer.granted && answer.reason === 'held');
        assertBetween(answer.retryAfterMs, LONG - 10_000, LONG);
        assert.deepEqual(await bench.store.renew([held]), ['renewed']);
      });

      handOverPromise('lets those go first who have waited longer (rule 10)', async (bench) => {
        const held = await bench.take(bench.key());
        const other = bench.waiter(held.key, {}, 2_000, await bench.another());
        await other.stand();
        const next = bench.waiter(held.key, {}, 1_000);
        await next.stand();
        const { freed, answer } = await next.handOver(held);
        assert.equal(freed, true);
        assert.ok(!answer.granted && answer.reason === 'held' && answer.inLine);
        await other.turn();
        assert.equal(next.grant, undefined);
        await other.store.release(other.claim, {});
        await next.turn();
      });

      handOverPromise('lets those wait on who have waited less (rule 10)', async (bench) => {
        const held = await bench.take(bench.key());
        const other = bench.waiter(held.key, {}, 1_000, await bench.another());
        await other.stand();
        const next = bench.waiter(held.key, {}, 2_000);
        await next.stand();
        granted((await next.handOver(held)).answer);
        assert.equal((await other.ask()).granted, false);
        await bench.store.release(next.claim, {});
        await other.turn();
      });

      handOverPromise('that comes again is recognised (rule 2)', async (bench) => {
        const held = await bench.take(bench.key());
        const next = bench.waiter(held.key);
        const first = await next.handOver(held);
        const again = await next.handOver(held);
        assert.equal(again.freed, false);
        assert.equal(granted(again.answer).fence, granted(first.answer).fence);
      });
    });

    const { loseData, freeze, thaw } = options;
    if (loseData !== undefined) {
      promise('fences grow though the server lost its data (rule 8)', async (bench) => {
        const key = bench.key();
        let last = 0;
        for (let i = 0; i < 5; i++) {
          const claim = bench.claim(key);
          // It may take a moment to be back.
          const { fence } = await until(() =>
            bench.store.acquire(claim).then(
              (answer) => (answer.granted ? answer : undefined),
              () => undefined,
            ),
          );
          assert.ok(fence > last, `${fence} after ${last}`);
          last = fence;
          await loseData();
        }
      });
    }
    if (freeze !== undefined && thaw !== undefined) {
      promise('a claim that nobody waits for any more is not executed (rule 2)', async (bench) => {
        const key = bench.key();
        await bench.store.inspect(key);
        await freeze();
        let answer: unknown;
        try {
          const patience = 100;
          const asked = bench.store.acquire(bench.claim(key, { patience, ttl: LONG }));
          const late = asked.then(
            ({ granted }) => (answer = granted),
            (error: unknown) => (answer = error),
          );
          await setTimeout(2 * patience);
          await thaw();
          await late;
        } finally {
          await thaw();
        }
        assert.notEqual(answer, true, 'granted after its deadline');
        await until(async () => {
          const claim = bench.claim(key);
          return bench.store.acquire(claim).then(
            ({ granted }) => granted,
            () => false,
          );
        });
      });
    }

    promise('watching a key tells of its release', async (bench) => {
      if (bench.store.watch === undefined) return;
      const held = await bench.take(bench.key(), { ttl: LONG });
      let told = 0;
      const stop = await bench.store.watch(held.key, () => told++);
      await bench.store.release(held, {});
      await until(() => told > 0);
      await stop();
    });

    promise('may be closed twice', async (bench) => {
      await bench.take(bench.key());
      await bench.store.close();
      await bench.store.close();
    });

    promise('can be opened again after it was closed', async (bench) => {
      const held = await bench.take(bench.key(), { ttl: LONG });
      await bench.store.close();
      await bench.store.open?.();
      // Without an expiry a key is the holder's for as long as it is there: closing was its end.
      const isThere = bench.store.limits.expiry !== false;
      assert.deepEqual(await bench.store.renew([held]), [isThere ? 'renewed' : 'gone']);
      await bench.take(bench.key());
    });
  });
}

/** Keys, and names of units of work, that a store may trip over. */
const HOSTILE: readonly string[] = [
  'plain',
  'with space',
  'a:b:c',
  'a/b//c',
  '{tag}',
  '{',
  '}',
  '}x',
  'a}{b',
  '{}',
  '%7B',
  '%',
  '%25',
  '*',
  'a*',
  '?',
  '[',
  '[a]',
  '[^a]',
  '\\',
  '\\*',
  "it's",
  '"quoted"',
  ':permits',
  ':once:x',
  'owner',
  'ключ',
  '钥匙',
  '🔑',
  'é',
  'e\u0301',
  '$1',
  '0',
  '-1',
  'x'.repeat(512),
  `${'x'.repeat(511)}y`,
  '🔑'.repeat(128),
];

/** What, put behind a key, a careless store could read as something that belongs to the key itself. */
const NEAR = ['}', ':permits', '}:permits', ':once:tick', '}:once:tick', '/a', ' ', '\\', '%7D'];

type Held = Hold & Grant & { readonly instance: string };

/** A store and the means to ask it briefly. */
class Bench {
  /** No other test, and no other run, has it. */
  readonly own = randomUUID();
  readonly prefix = `contract:${this.own}/`;
  #keys = 0;
  #shortSince: number | undefined;
  readonly #others: LeaseStore[] = [];

  constructor(
    readonly store: LeaseStore,
    private readonly factory: LeaseStoreFactory,
    private readonly stretch: number,
  ) {}

  /** Whether it failed when a short ttl could have been over that a step was to be in time for. */
  wasTooSlow(error: unknown): boolean {
    if (this.#shortSince === undefined || error instanceof Never) return false;
    return performance.now() - this.#shortSince >= this.shortTtl;
  }

  /** The store of another process, as far as one can tell: a new one, or the n-th that was made so. */
  async another(n = this.#others.length): Promise<LeaseStore> {
    return (this.#others[n] ??= await this.factory());
  }

  async close(): Promise<void> {
    await Promise.all([this.store, ...this.#others].map((store) => store.close()));
  }

  /** Somebody who has waited for so many milliseconds already. */
  waiter(key: string, options: Partial<Claim> = {}, waited = 0, store = this.store): Waiter {
    return new Waiter(store, this.claim(key, options), performance.now() - waited);
  }

  /** Ends within a test, and not before its next step. */
  get shortTtl(): number {
    this.#shortSince ??= performance.now();
    return Math.max(this.store.limits.minTtl, 100) * this.stretch;
  }

  key(name = `key-${this.#keys++}`): string {
    return this.prefix + name;
  }

  claim(key: string, claim: Partial<Claim> = {}): Claim {
    return {
      key,
      token: randomUUID(),
      ttl: 10_000,
      permits: 1,
      instance: 'contract',
      patience: 5_000,
      ...claim,
    };
  }

  /** As somebody who holds nothing might show it. */
  hold(key: string, hold: Partial<Hold> = {}): Hold {
    return { key, token: randomUUID(), ttl: 10_000, permits: 1, ...hold };
  }

  async take(key: string, options?: Partial<Claim>): Promise<Held> {
    const claim = this.claim(key, options);
    return { ...claim, ...granted(await this.store.acquire(claim), key) };
  }

  async refused(key: string, options?: Partial<Claim>): Promise<Refusal> {
    const answer = await this.store.acquire(this.claim(key, options));
    assert.ok(!answer.granted, `granted: ${key}`);
    return answer;
  }

  /** Until a claim is granted; gives the key back. */
  async untilFree(key: string, options?: Partial<Claim>): Promise<void> {
    const claim = this.claim(key, options);
    const how: ReleaseHow = {};
    await until(async () => (await this.store.acquire(claim)).granted);
    await this.store.release(claim, how);
  }

  async record(key: string): Promise<LeaseRecord> {
    const record = await this.store.inspect(key);
    assert.ok(record !== null, `nothing is known of ${key}`);
    return record;
  }

  async list(prefix?: string): Promise<string[]> {
    const keys: string[] = [];
    const options = prefix === undefined ? undefined : { prefix };
    for await (const { key } of this.store.list(options)) keys.push(key);
    return keys.toSorted();
  }
}

/** Somebody who waits for a key, and what it was told. */
class Waiter {
  calls = 0;
  grant: Grant | undefined;
  readonly #onTurn: OnTurn = (grant) => {
    this.calls++;
    this.grant ??= grant;
  };

  constructor(
    readonly store: LeaseStore,
    readonly claim: Claim,
    readonly since: number,
  ) {}

  ask(): Promise<Grant | Refusal> {
    return this.store.enqueue!(this.#now(), this.#onTurn);
  }

  handOver(hold: Hold): Promise<HandOver> {
    return this.store.handOver!(hold, this.#now(), this.#onTurn);
  }

  /** Until it stands in line: a store may have to listen first, and calls when it does. */
  async stand(): Promise<Refusal> {
    for (;;) {
      const { calls } = this;
      const answer = await this.ask();
      assert.ok(!answer.granted && answer.reason === 'held', JSON.stringify(answer));
      if (answer.inLine) return answer;
      await until(() => this.calls > calls);
    }
  }

  /** Until the key was given to it. */
  turn(): Promise<Grant> {
    return until(() => this.grant);
  }

  #now(): Claim {
    return { ...this.claim, waited: performance.now() - this.since };
  }
}

function granted(answer: Grant | Refusal, key = ''): Grant {
  assert.ok(answer.granted, `refused: ${key} ${JSON.stringify(answer)}`);
  return answer;
}

function assertBetween(value: number | undefined, least: number, most: number): void {
  const fits = value !== undefined && value >= least && value <= most;
  assert.ok(fits, `${value} is not from ${least} to ${most}`);
}

async function until<T>(condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() >= deadline) throw new Never(`never: ${condition.toString()}`);
    await setTimeout(5);
  }
}

/** What was waited for did not come, and would not if it were waited for again. */
class Never extends Error {}

type Runner = Required<Pick<LeaseStoreSuiteOptions, 'describe' | 'it'>>;

function runnerOf(options: LeaseStoreSuiteOptions): Runner {
  const globals = globalThis as Partial<Runner>;
  const { describe = globals.describe, it = globals.it } = options;
  if (typeof describe !== 'function' || typeof it !== 'function') {
    throw new TypeError(NO_TEST_RUNNER());
  }
  return { describe, it };
}
