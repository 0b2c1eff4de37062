import { describe, expect, it } from '@jest/globals';
import { fail, hang } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { TTL, World } from './world.js';

function left({ engine, memory, store }: World): object {
  return {
    leases: engine.leases.size,
    awaited: engine.awaited,
    appointments: engine.agenda.size,
    records: memory.size,
    watchers: store.watchers,
  };
}
const NOTHING = { leases: 0, awaited: 0, appointments: 0, records: 0, watchers: 0 };

describe('nothing is left in the process', () => {
  it('of 10,000 distinct keys that were acquired and released', async () => {
    const world = new World();
    for (let batch = 0; batch < 100; batch++) {
      await Promise.all(
        Array.from({ length: 100 }, (_, i) => world.engine.run(`k${batch * 100 + i}`, () => {})),
      );
    }
    await settle();
    expect(world.store.claims).toHaveLength(10_000);
    expect(left(world)).toEqual(NOTHING);
  });

  it('of 1,000 distinct keys that were waited for', async () => {
    const world = new World();
    const holder = await world.rival().acquire(Array.from({ length: 1_000 }, (_, i) => `k${i}`));
    const waiting = Array.from({ length: 1_000 }, (_, i) =>
      world.engine.acquire(`k${i}`, { wait: 100 }).catch(() => {}),
    );
    await world.clock.advance(100);
    await Promise.all(waiting);
    await holder.release();
    await settle();
    expect(left(world)).toEqual(NOTHING);
  });

  it('of 1,000 claims that the store never answered', async () => {
    const world = new World();
    world.store.always('acquire', hang);
    world.store.always('release', fail(new Error('down')));
    const asked = Array.from({ length: 1_000 }, (_, i) =>
      world.engine.acquire(`k${i}`).catch(() => {}),
    );
    await world.clock.advance(TTL);
    await Promise.all(asked);
    expect(left(world)).toEqual(NOTHING);
  });

  it('of one timer for all leases when the last is given back and the engine closed', async () => {
    const world = new World();
    const leases = await Promise.all(
      Array.from({ length: 100 }, (_, i) => world.engine.acquire(`k${i}`)),
    );
    expect(world.clock.timers).toBe(1);
    await Promise.all(leases.map((lease) => lease.release()));
    await world.engine.close(0, 0);
    expect(world.clock.timers).toBe(0);
  });
});
