import { describe, expect, it } from '@jest/globals';
import { LeaseDoneException } from '../../../lib/exceptions/lease-done.exception.js';
import { fail } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { deferred, outcome, TRUSTED, World } from './world.js';

const job = { once: 'job 1' };

describe('once', () => {
  it('refuses as done what was run with success, anywhere (rule 9)', async () => {
    const world = new World();
    await world.engine.run('k', () => {}, job);
    const rival = world.rival();
    await expect(rival.run('k', () => {}, job)).rejects.toBeInstanceOf(LeaseDoneException);
    await expect(rival.acquire('k', job)).rejects.toMatchObject({
      code: 'LEASE_DONE',
      key: 'k',
      once: 'job 1',
    });
    expect(await world.engine.tryAcquire('k', job)).toBeNull();
    expect(world.of('refused').map(({ reason }) => reason)).toEqual(['done']);
  });

  it('is of one unit of work and one key', async () => {
    const { engine } = new World();
    await engine.run('k', () => {}, job);
    expect(await engine.run('k', () => 'ran', { once: 'job 2' })).toBe('ran');
    expect(await engine.run('other', () => 'ran', job)).toBe('ran');
    expect(await engine.run('k', () => 'ran')).toBe('ran');
  });

  it('is remembered for a day, or for as long as `remember` says', async () => {
    const { engine, clock } = new World();
    await engine.run('k', () => {}, job);
    await engine.run('short', () => {}, { ...job, remember: '1m' });
    await clock.advance(60_000);
    expect(await engine.run('short', () => 'ran', job)).toBe('ran');
    await clock.advance(86_400_000 - 60_001);
    expect(await engine.tryAcquire('k', job)).toBeNull();
    await clock.advance(1);
    expect(await engine.run('k', () => 'ran', job)).toBe('ran');
  });

  it('is not done by work that failed', async () => {
    const { engine } = new World();
    await engine.run('k', () => Promise.reject(new Error('mine')), job).catch(() => {});
    expect(await engine.run('k', () => 'ran', job)).toBe('ran');
  });

  it('is not done by work whose lease was lost on the way', async () => {
    const { engine, clock } = new World();
    const run = engine.run('k', async () => clock.freeze(TRUSTED), job);
    await expect(run).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await settle();
    expect(await engine.run('k', () => 'ran', job)).toBe('ran');
  });

  it('is not done by a lease that was only acquired and released', async () => {
    const { engine } = new World();
    await (await engine.acquire('k', job)).release();
    expect(await engine.run('k', () => 'ran', job)).toBe('ran');
  });

  it('is not done by an inner run that succeeded in an outer one that failed', async () => {
    const { engine } = new World();
    const run = engine.run(
      'k',
      async () => {
        await engine.run('k', () => 'fine', job);
        throw new Error('mine');
      },
      job,
    );
    await expect(run).rejects.toThrow('mine');
    expect(await engine.run('k', () => 'ran', job)).toBe('ran');
  });

  it('is not done by detached work that succeeded after the run itself failed', async () => {
    const { engine } = new World();
    const work = deferred();
    let detached: Promise<void> | undefined;
    const run = engine.run(
      'k',
      async () => {
        detached = engine.run('k', () => work.promise);
        await settle();
        throw new Error('mine');
      },
      job,
    );
    await expect(run).rejects.toThrow('mine');
    work.resolve();
    await detached;
    expect(await engine.run('k', () => 'ran', job)).toBe('ran');
  });

  it('is done by the run that succeeded, though detached work of it failed', async () => {
    const { engine } = new World();
    const work = deferred();
    let detached: ReturnType<typeof outcome> | undefined;
    await engine.run(
      'k',
      async () => {
        detached = outcome(engine.run('k', () => work.promise));
        await settle();
      },
      job,
    );
    work.reject(new Error('detached'));
    await settle();
    expect(detached!.state).toBe('rejected');
    expect(await engine.tryAcquire('k', job)).toBeNull();
  });

  it('is remembered by the release itself, and survives one that has to be sent twice (rule 7)', async () => {
    const { engine, store } = new World();
    store.next('release', fail(new Error('reset')));
    await engine.run('k', () => {}, job);
    expect(store.releases.map(({ how }) => how)).toEqual([
      { done: { once: 'job 1', remember: 86_400_000 } },
      { done: { once: 'job 1', remember: 86_400_000 } },
    ]);
    expect(await engine.tryAcquire('k', job)).toBeNull();
  });

  it('of several keys is remembered for each', async () => {
    const { engine } = new World();
    await engine.run(['a', 'b'], () => {}, job);
    expect([await engine.tryAcquire('a', job), await engine.tryAcquire('b', job)]).toEqual([
      null,
      null,
    ]);
  });

  it('spends no fence when refused (rule 8)', async () => {
    const { engine } = new World();
    const first = await engine.run('k', ({ fence }) => fence, job);
    for (let i = 0; i < 5; i++) await engine.tryAcquire('k', job);
    expect(await engine.run('k', ({ fence }) => fence)).toBe(first + 1);
  });
});
