import { describe, expect, it } from '@jest/globals';
import { fail } from '../../support/scripted-store.js';
import { swallowUncaught } from './uncaught.js';
import { TRUSTED, TTL, World } from './world.js';

describe('events', () => {
  it('tell the life of a lease, each with key, instance and time', async () => {
    const world = new World();
    const lease = await world.engine.acquire('k');
    const started = world.clock.wall();
    await world.clock.advance(2_500);
    await lease.release();
    const { fence } = lease;
    const about = { key: 'k', instance: 'me', fence };
    expect(world.events).toEqual([
      { ...about, type: 'acquired', ttl: TTL, waitedMs: 0, at: new Date(started) },
      { ...about, type: 'renewed', remainingMs: TRUSTED, at: new Date(started + 2_000) },
      {
        ...about,
        type: 'released',
        heldMs: 2_500,
        outcome: 'released',
        at: new Date(started + 2_500),
      },
    ]);
  });

  it('of one failed renewal reach those who listen for trouble alone (rule 6)', async () => {
    const world = new World();
    const troubles: number[] = [];
    world.engine.events.troubles.subscribe(({ failures }) => troubles.push(failures));
    await world.engine.acquire('k');
    world.store.next('renew', fail(new Error('1')), fail(new Error('2')));
    await world.clock.advance(TTL);
    expect(troubles).toEqual([1, 2]);
  });

  it('change nothing when a subscriber throws at every one of them (rule 12)', async () => {
    const world = new World();
    const thrown = await swallowUncaught(async () => {
      world.engine.events.all.subscribe(() => {
        throw new Error('in a subscriber');
      });
      const lease = await world.engine.acquire('k');
      world.store.next('renew', fail(new Error('1')));
      await world.clock.advance(2 * TTL);
      expect(lease.isHeld).toBe(true);
      expect(await lease.release()).toBe('released');
    });
    expect(thrown).toHaveLength(world.events.length);
    expect(await world.isTaken('k')).toBe(false);
    expect(world.engine.agenda.size).toBe(0);
  });

  it('may be answered with leases: a subscriber that takes one is no part of what it hears of (rule 1)', async () => {
    const world = new World();
    const tried: Promise<unknown>[] = [];
    world.engine.events.all.subscribe(({ type, key }) => {
      if (type === 'released' && key === 'inner') tried.push(world.engine.tryAcquire('outer'));
    });
    await world.engine.run('outer', () => world.engine.run('inner', () => {}));
    expect(tried).toHaveLength(1);
    expect(await tried[0]).toBeNull();
  });

  it('complete when the engine is closed', async () => {
    const { engine } = new World();
    const seen: string[] = [];
    engine.events.all.subscribe({ complete: () => seen.push('all') });
    engine.events.lost.subscribe({ complete: () => seen.push('lost') });
    engine.events.troubles.subscribe({ complete: () => seen.push('troubles') });
    await engine.close(0, 0);
    expect(seen).toEqual(['all', 'lost', 'troubles']);
  });
});
