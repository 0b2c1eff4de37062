import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';
import { Fleet, type StoreElsewhere } from '../support/fleet.js';
import { startRedis } from '../support/redis-server.js';

const TTL = 900;
/** A worker looks every millisecond; a busy machine lets it look a little later. */
const A_LOOK = 50;

/** Three processes take turns with a key; in the middle the server that decides is killed. */
describe('Three processes, and the server killed between their turns', () => {
  let lib: CompiledLib;
  let fleet: Fleet | undefined;
  const stopping: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    lib = await compileLib();
  });
  afterEach(async () => {
    await fleet?.kill();
    await Promise.all(stopping.splice(0).map((stop) => stop()));
  });
  afterAll(() => lib.remove());

  /** Turns before, the trouble, turns after. */
  async function turnsAround(
    store: StoreElsewhere,
    trouble: () => Promise<unknown>,
  ): Promise<Fleet> {
    fleet = Fleet.start(lib, store, { ttl: TTL });
    await fleet.more(30);
    await trouble();
    await fleet.more(30);
    await fleet.end();
    expect(fleet.unhandled).toEqual([]);
    expect(fleet.errors).toBe('');
    return fleet;
  }

  const redis = (...args: unknown[]): StoreElsewhere => ({
    module: 'stores/redis/redis-lease-store.js',
    export: 'RedisLeaseStore',
    args,
  });

  it('on one Redis that keeps its data: nobody beside another, fences in order (rules 1 and 8)', async () => {
    const server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    stopping.push(() => server.stop());
    const { overlaps, disorder } = await turnsAround(redis(server.url), () => server.restart());
    expect(overlaps).toEqual([]);
    expect(disorder).toEqual([]);
  });

  it('on one Redis that loses its data: beside each other until the next renewal, fences in order (rule 8)', async () => {
    const server = await startRedis();
    stopping.push(() => server.stop());
    const { overlaps, disorder } = await turnsAround(redis(server.url), () => server.restart());
    // Who had it is told at its next renewal: that window is what the README says of a Redis that restarts empty.
    for (const { ms } of overlaps) expect(ms).toBeLessThanOrEqual(TTL / 3 + TTL / 6 + A_LOOK);
    expect(overlaps.length).toBeLessThanOrEqual(1);
    expect(disorder).toEqual([]);
  });
});
