import { AsyncResource } from 'node:async_hooks';
import { describe, expect, it, jest } from '@jest/globals';
import { LeaseHeldException } from '../../../lib/exceptions/lease-held.exception.js';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import { Lease } from '../../../lib/lease/lease.js';
import { ONCE_ON_REENTRY } from '../../../lib/lease.messages.js';
import { settle } from '../../support/virtual-clock.js';
import { deferred, outcome, TRUSTED, TTL, World } from './world.js';

describe('re-entry', () => {
  it('has the same fence, and asks the store nothing (rule 8)', async () => {
    const { engine, store } = new World();
    await engine.run('k', async (outer) => {
      const inner = await engine.acquire('k');
      expect(inner.fence).toBe(outer.fence);
      expect(inner).not.toBe(outer);
      await inner.release();
    });
    expect([store.claims.length, store.releases.length]).toEqual([1, 1]);
  });

  it('follows awaits, timers and callbacks', async () => {
    const { engine, store } = new World();
    await engine.run('k', async () => {
      await settle();
      await new Promise<void>((resolve) => {
        setTimeout(() => void engine.run('k', () => resolve()), 1);
      });
    });
    expect(store.claims).toHaveLength(1);
  });

  it('keeps the lease when the inner is released (rule 7)', async () => {
    const world = new World();
    await world.engine.run('k', async (outer) => {
      const inner = await world.engine.acquire('k');
      expect(await inner.release()).toBe('released');
      expect([inner.isHeld, outer.isHeld]).toEqual([false, true]);
      expect(() => inner.assertHeld()).toThrow(LeaseLostException);
      expect(await world.isTaken('k')).toBe(true);
    });
    expect(world.of('released')).toHaveLength(1);
  });

  it('of detached work that outlives the outer keeps the lease until it ends', async () => {
    const world = new World();
    const work = deferred();
    let inner: Promise<unknown> | undefined;
    await world.engine.run('k', async () => {
      inner = world.engine.run('k', () => work.promise);
      await settle();
    });
    await world.clock.advance(3 * TTL);
    expect(await world.isTaken('k')).toBe(true);
    expect(await world.rival().tryAcquire('k')).toBeNull();
    work.resolve();
    await inner;
    expect(await world.isTaken('k')).toBe(false);
    expect(world.engine.leases.size).toBe(0);
  });

  it('by detached work after the lease was given back is a claim like any other', async () => {
    const { engine, store } = new World();
    const later = deferred();
    let detached: Promise<number> | undefined;
    const fence = await engine.run('k', async (outer) => {
      detached = later.promise.then(() => engine.run('k', (lease) => lease.fence));
      return outer.fence;
    });
    later.resolve();
    expect(await detached).toBeGreaterThan(fence);
    expect(store.claims).toHaveLength(2);
  });

  it('after a loss throws, instead of going on under a new lease (rules 4 and 5)', async () => {
    const { engine, store, clock } = new World();
    const run = engine.run(
      'k',
      async () => {
        await clock.advance(TRUSTED);
        const again = engine.acquire('k', { wait: '1m' });
        await expect(again).rejects.toBeInstanceOf(LeaseLostException);
        await expect(engine.tryAcquire('k')).rejects.toBeInstanceOf(LeaseLostException);
      },
      { renew: false },
    );
    await expect(run).rejects.toBeInstanceOf(LeaseLostException);
    expect(store.claims).toHaveLength(1);
  });

  it('by a loop that goes on after its lost lease was given back is a claim like any other', async () => {
    const { engine, clock } = new World();
    const later = deferred();
    let next: Promise<string> | undefined;
    const run = engine.run(
      'k',
      async () => {
        next = later.promise.then(() => engine.run('k', () => 'next round'));
        await clock.advance(TRUSTED);
      },
      { renew: false },
    );
    await expect(run).rejects.toBeInstanceOf(LeaseLostException);
    later.resolve();
    expect(await next).toBe('next round');
  });

  it('drags no past along when every run starts the next from inside itself', async () => {
    const { engine } = new World();
    let looks = 0;
    const round = (left: number): Promise<void> => {
      const isOver = deferred();
      let next: Promise<void> | undefined;
      const run = engine.run('k', () => {
        if (left > 0) next = isOver.promise.then(() => round(left - 1));
        const look = jest.spyOn(Lease.prototype, 'holdings', 'get');
        engine.scope.find('test/no such key');
        looks = look.mock.calls.length;
        look.mockRestore();
      });
      return run.then(() => {
        isOver.resolve();
        return next;
      });
    };
    await round(50);
    // One for the run itself, and none for those before it.
    expect(looks).toBe(1);
  });

  it('drags no past along when every run ends inside the next, which it has started', async () => {
    const { engine } = new World();
    let looks = 0;
    const round = async (left: number, enter: () => void): Promise<void> => {
      let next: Promise<void> | undefined;
      await engine.run(`k${left}`, async () => {
        enter();
        if (left > 0) await new Promise<void>((isIn) => (next = round(left - 1, isIn)));
        const look = jest.spyOn(Lease.prototype, 'isReleased', 'get');
        engine.scope.find('test/no such key');
        looks = look.mock.calls.length;
        look.mockRestore();
      });
      await next;
    };
    await round(0, () => {});
    const alone = looks;
    await round(50, () => {});
    expect(alone).toBeGreaterThan(0);
    expect(looks).toBeLessThanOrEqual(alone * 3);
  });

  it('for another key is a claim like any other', async () => {
    const { engine, store } = new World();
    await engine.run('a', async (outer) => {
      const inner = await engine.acquire('b');
      expect(inner.fence).not.toBe(outer.fence);
      await inner.release();
    });
    expect(store.claims.map(({ key }) => key)).toEqual(['test/a', 'test/b']);
  });

  it('through another lease in between finds the outer one', async () => {
    const { engine, store } = new World();
    await engine.run('a', (a) =>
      engine.run('b', () => engine.run('a', (again) => expect(again.fence).toBe(a.fence))),
    );
    expect(store.claims).toHaveLength(2);
  });

  it('is not for other async contexts (rule 1)', async () => {
    const { engine } = new World();
    const outside = new AsyncResource('outside');
    await engine.run('k', async () => {
      const other = outside.runInAsyncScope(() => engine.acquire('k'));
      await expect(other).rejects.toBeInstanceOf(LeaseHeldException);
    });
  });

  it('is not for two that run side by side (rule 1)', async () => {
    const { engine } = new World();
    const work = deferred();
    const first = engine.run('k', () => work.promise);
    await expect(engine.run('k', () => {})).rejects.toBeInstanceOf(LeaseHeldException);
    work.resolve();
    await first;
  });

  it('is not for a lease that was only acquired: nobody knows which code is inside it', async () => {
    const { engine } = new World();
    await engine.acquire('k');
    expect(await engine.tryAcquire('k')).toBeNull();
  });

  it('with the same `once` is the same work', async () => {
    const { engine } = new World();
    const again = await engine.run('k', () => engine.run('k', () => 'inside', { once: 'job' }), {
      once: 'job',
    });
    expect(again).toBe('inside');
  });

  it('without `once` is part of the work', async () => {
    const { engine } = new World();
    const again = await engine.run('k', () => engine.run('k', () => 'inside'), { once: 'job' });
    expect(again).toBe('inside');
  });

  it('with another `once` is an error that says so', async () => {
    const { engine } = new World();
    const run = engine.run('k', () => engine.run('k', () => {}, { once: 'other' }), {
      once: 'job',
    });
    await expect(run).rejects.toThrow(new TypeError(ONCE_ON_REENTRY('k', 'other')));
    expect(engine.leases.size).toBe(0);
  });

  it('of several keys takes those that are missing, and gives back only them', async () => {
    const world = new World();
    await world.engine.run('b', async (outer) => {
      const inner = await world.engine.acquire(['a', 'b', 'c']);
      expect(inner.fenceOf('b')).toBe(outer.fence);
      expect(world.store.claims.map(({ key }) => key)).toEqual(['test/b', 'test/a', 'test/c']);
      await inner.release();
      expect(await world.isTaken('a')).toBe(false);
      expect(outer.isHeld).toBe(true);
    });
  });

  it('of several keys of which one is refused leaves the outer lease as it was', async () => {
    const world = new World();
    await world.rival().acquire('z');
    await world.engine.run('a', async (outer) => {
      expect(await world.engine.tryAcquire(['a', 'z'])).toBeNull();
      expect(outer.isHeld).toBe(true);
    });
    expect(await world.isTaken('a')).toBe(false);
  });

  it('is lost together with the outer: one loss, both signals (rule 5)', async () => {
    const world = new World();
    const run = outcome(
      world.engine.run('k', (outer) =>
        world.engine.run('k', async (inner) => {
          const signals = [outer.signal, inner.signal];
          await world.steal('k');
          await world.clock.advance(2_000);
          expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
        }),
      ),
    );
    await world.clock.advance(2_000);
    await settle();
    expect(run.error).toBeInstanceOf(LeaseLostException);
    expect(world.of('lost')).toHaveLength(1);
  });

  it('is possible while the application shuts down: work in flight may finish (rule 11)', async () => {
    const { engine } = new World();
    const closing = deferred();
    const run = engine.run('k', async () => {
      await closing.promise;
      return engine.run('k', () => 'finished');
    });
    await settle();
    const closed = engine.close(1_000, 1_000);
    closing.resolve();
    expect(await run).toBe('finished');
    expect(await closed).toEqual([]);
  });
});

describe('a handle that outlives its run', () => {
  it('is entered again by what that run left behind, though nothing else is in flight', async () => {
    const { engine } = new World();
    const gate = deferred();
    let inner!: Lease;
    let again!: Promise<Lease | null>;
    await engine.run('k', async () => {
      inner = await engine.acquire('k');
      again = gate.promise.then(() => engine.tryAcquire('k'));
    });
    expect(inner.isHeld).toBe(true);
    gate.resolve(undefined);
    expect((await again)?.fence).toBe(inner.fence);
  });
});
