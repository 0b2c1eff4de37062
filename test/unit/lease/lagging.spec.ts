import { describe, expect, it } from '@jest/globals';
import { THIRD, TRUSTED, TTL, World } from './world.js';

const MARGIN = TTL / 6;

/** The event loop is blocked at the moment the first renewal is due. */
async function blockedFor(ms: number, keys = ['k']): Promise<World> {
  const world = new World();
  for (const key of keys) await world.engine.acquire(key);
  await world.clock.advance(THIRD - 1);
  world.clock.freeze(1 + ms);
  await world.clock.advance(0);
  return world;
}

describe('an event loop that lags', () => {
  it('by more than half a margin is told of, with how late it was and what is left', async () => {
    const world = await blockedFor(MARGIN / 2 + 100);
    expect(world.of('lagging')).toMatchObject([
      {
        key: 'k',
        fence: expect.any(Number),
        lateMs: MARGIN / 2 + 100,
        remainingMs: TRUSTED - THIRD - MARGIN / 2 - 100,
      },
    ]);
  });

  it('by less is not worth an event', async () => {
    const world = await blockedFor(MARGIN / 2 - 100);
    expect(world.of('lagging')).toEqual([]);
    expect(world.of('renewed')).toHaveLength(1);
  });

  it('is told of for every lease it came near', async () => {
    const world = await blockedFor(MARGIN, ['a', 'b']);
    expect(world.of('lagging').map(({ key }) => key)).toEqual(['a', 'b']);
  });

  it('is told of once between two renewals, and again after the next', async () => {
    const world = new World();
    await world.engine.acquire('k', { ttl: 10 * TTL });
    const lag = async (): Promise<void> => {
      // Past the next look at the clock, which comes once in a margin.
      world.clock.freeze(18_000);
      await world.clock.advance(0);
    };
    await lag();
    expect(world.of('lagging')).toHaveLength(1);
    world.store.always('renew', () => new Promise(() => {}));
    await lag();
    expect(world.of('lagging')).toHaveLength(1);
    world.store.always('renew', (call) => call());
    await world.clock.advance(12_000);
    expect(world.of('renewed').length).toBeGreaterThan(0);
    await lag();
    expect(world.of('lagging')).toHaveLength(2);
  });

  it('so long that the lease is over is a loss, and nothing else (rule 4)', async () => {
    const world = await blockedFor(TTL);
    expect(world.of('lagging')).toEqual([]);
    expect(world.of('lost').map(({ reason }) => reason)).toEqual(['expired']);
  });
});
