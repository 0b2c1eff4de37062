import { describe, expect, it } from '@jest/globals';
import { LeaseHeldException } from '../../../lib/exceptions/lease-held.exception.js';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import { settle } from '../../support/virtual-clock.js';
import { deferred, outcome, TRUSTED, World } from './world.js';

describe('run', () => {
  it('passes the lease in and the result out, and gives the lease back (rule 13)', async () => {
    const world = new World();
    const result = { some: 'result' };
    const given = await world.engine.run('k', async (lease) => {
      expect(lease.key).toBe('k');
      expect(lease.isHeld).toBe(true);
      expect(await world.isTaken('k')).toBe(true);
      return result;
    });
    expect(given).toBe(result);
    expect(await world.isTaken('k')).toBe(false);
    expect(world.engine.leases.size).toBe(0);
  });

  it.each([
    ['an error', new Error('mine')],
    ['a string', 'mine'],
    ['undefined', undefined],
    ['a frozen object', Object.freeze({ status: 404 })],
  ])('passes %s that the work rejects with through, the same object (rule 13)', async (_, mine) => {
    const world = new World();
    const run = outcome(world.engine.run('k', () => Promise.reject(mine)));
    await settle();
    expect(run.state).toBe('rejected');
    expect(run.error).toBe(mine);
    expect(await world.isTaken('k')).toBe(false);
  });

  it('passes what the work throws synchronously through (rule 13)', async () => {
    const mine = new Error('mine');
    const run = new World().engine.run('k', () => {
      throw mine;
    });
    await expect(run).rejects.toBe(mine);
  });

  it('rejects when the lease was lost on the way, though the work succeeded (rule 13)', async () => {
    const world = new World();
    const work = deferred<string>();
    const run = outcome(world.engine.run('k', () => work.promise, { renew: false }));
    await world.clock.advance(TRUSTED);
    work.resolve('a result of nothing');
    await settle();
    expect(run.error).toBeInstanceOf(LeaseLostException);
    expect(run.error).toMatchObject({ reason: 'expired' });
  });

  it('rejects when the lease was lost on the way, though nobody noticed yet (rules 4 and 13)', async () => {
    const { engine, clock } = new World();
    const run = engine.run('k', async () => clock.freeze(TRUSTED));
    await expect(run).rejects.toBeInstanceOf(LeaseLostException);
  });

  it('rejects when the lease was lost and then released by the work itself (rule 13)', async () => {
    const { engine, clock } = new World();
    const run = engine.run('k', async (lease) => {
      clock.freeze(TRUSTED);
      await lease.release();
    });
    await expect(run).rejects.toBeInstanceOf(LeaseLostException);
  });

  it('passes the work’s own error when both happen: the lease is lost and the work throws (rule 13)', async () => {
    const { engine, clock } = new World();
    const mine = new Error('mine');
    const run = engine.run('k', async () => {
      clock.freeze(TRUSTED);
      throw mine;
    });
    await expect(run).rejects.toBe(mine);
  });

  it('passes the reason of the signal on when the work throws it (rule 13)', async () => {
    const { engine, clock } = new World();
    const run = outcome(
      engine.run(
        'k',
        async ({ signal }) => {
          await new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          });
        },
        { renew: false },
      ),
    );
    await clock.advance(TRUSTED);
    expect(run.error).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
  });

  it('passes the result of work that gave the lease back early (rule 13)', async () => {
    const { engine, store } = new World();
    const result = await engine.run('k', async (lease) => {
      await lease.release();
      return 'done';
    });
    expect(result).toBe('done');
    expect(store.releases).toHaveLength(1);
  });

  it('runs nothing when the key is held (rule 9)', async () => {
    const world = new World();
    await world.rival().acquire('k');
    let ran = false;
    const run = world.engine.run('k', () => (ran = true));
    await expect(run).rejects.toBeInstanceOf(LeaseHeldException);
    expect(ran).toBe(false);
  });

  it('shows its lease to the code inside it, and to nobody else', async () => {
    const { engine } = new World();
    await engine.run('k', async (lease) => {
      await settle();
      expect(engine.scope.current).toBe(lease);
    });
    expect(engine.scope.current).toBeUndefined();
  });

  it('keeps two at a time from running under one key (rule 1)', async () => {
    const world = new World();
    const engines = [world.engine, world.rival(), world.rival()];
    let inside = 0;
    let most = 0;
    const runs = Array.from({ length: 30 }, (_, i) =>
      engines[i % 3]!.run(
        'k',
        async () => {
          most = Math.max(most, ++inside);
          await settle();
          inside--;
        },
        { wait: '10m' },
      ),
    );
    const all = outcome(Promise.all(runs));
    await world.clock.advance(60_000);
    expect(all.state).toBe('fulfilled');
    expect(most).toBe(1);
  });
});
