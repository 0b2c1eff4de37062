import { describe, expect, it } from '@jest/globals';
import { LeaseUnavailableException } from '../../../lib/exceptions/lease-unavailable.exception.js';
import { fail, hang, throwNow } from '../../support/scripted-store.js';
import { outcome, World } from './world.js';

describe('the fence', () => {
  it('grows with every grant of a key, whatever the wall clock does (rule 8)', async () => {
    const world = new World();
    const engines = [world.engine, world.rival()];
    let last = 0;
    for (let i = 0; i < 1_000; i++) {
      if (i % 100 === 50) world.clock.stepWall(-3_600_000);
      const fence = await engines[i % 2]!.run('k', (lease) => lease.fence);
      expect(fence).toBeGreaterThan(last);
      last = fence;
    }
  });

  it('grows over a lease that was lost and not released (rule 8)', async () => {
    const world = new World();
    const lost = await world.engine.acquire('k', { renew: false });
    await world.clock.advance(60_000);
    expect((await world.rival().acquire('k')).fence).toBeGreaterThan(lost.fence);
  });
});

describe('inspect', () => {
  it('says who holds a key and for how long', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k', { renew: false });
    const since = new Date(world.clock.wall());
    await world.clock.advance(1_000);
    expect(await world.engine.inspect('k')).toEqual({
      key: 'k',
      freeInMs: 5_000,
      holders: [
        {
          instance: 'me',
          fence: lease.fence,
          owner: world.store.claims[0]!.token.slice(0, 8),
          since,
          expiresInMs: 5_000,
        },
      ],
    });
  });

  it('is null for a key that is free', async () => {
    expect(await new World().engine.inspect('k')).toBeNull();
  });

  it.each([
    ['fails', fail(new Error('down'))],
    ['throws', throwNow(new Error('closed'))],
    ['never answers', hang],
  ])('rejects as unavailable when the store %s (rule 9)', async (_, script) => {
    const world = new World();
    world.store.next('inspect', script);
    const asked = outcome(world.engine.inspect('k'));
    await world.clock.advance(5_000);
    expect(asked.error).toBeInstanceOf(LeaseUnavailableException);
    expect(world.engine.agenda.size).toBe(0);
  });
});
