import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';
import { Fleet, type Overlap, type StoreElsewhere } from '../support/fleet.js';
import { startEtcdCluster } from '../support/etcd-server.js';
import { startPostgres } from '../support/postgres-server.js';
import { startRedisCluster } from '../support/redis-cluster.js';
import { startSentinel } from '../support/redis-sentinel.js';
import { startRedis } from '../support/redis-server.js';

const TTL = 900;
/** etcd counts whole seconds. */
const ETCD_TTL = 2_000;
/** A worker looks every millisecond; a busy machine lets it look a little later. */
const A_LOOK = 50;

// A failover takes its time, and so does a busy machine.
jest.setTimeout(90_000);

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
    ttl = TTL,
  ): Promise<Fleet> {
    fleet = Fleet.start(lib, store, { ttl });
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

  // A grant that no replica had heard of can be granted again: until its holder renews, two may have the key. That is the
  // window that docs/redis.md speaks of; here replicas are near and nothing of it is seen in nearly every run.
  const inTheWindow = (overlaps: readonly Overlap[]): void => {
    for (const { ms } of overlaps) expect(ms).toBeLessThanOrEqual(TTL / 3 + TTL / 6 + A_LOOK);
    expect(overlaps.length).toBeLessThanOrEqual(1);
  };

  it('behind Sentinel, the primary killed: beside each other only in the window of a failover, fences in order (rule 8)', async () => {
    const sentinel = await startSentinel();
    stopping.push(() => sentinel.stop());
    const primary = await sentinel.primary();
    const fleet = await turnsAround(redis(sentinel.options), () => primary.kill());
    inTheWindow(fleet.overlaps);
    expect(fleet.disorder).toEqual([]);
  });

  it('in a cluster, the primary of the key killed: beside each other only in the window of a failover, fences in order (rule 8)', async () => {
    const cluster = await startRedisCluster();
    stopping.push(() => cluster.stop());
    const primary = await cluster.ownerOf('lease:{turns}');
    const fleet = await turnsAround(redis({ cluster: cluster.seeds }), () => primary.kill());
    inTheWindow(fleet.overlaps);
    expect(fleet.disorder).toEqual([]);
  });

  it.each([3, 5])(
    'on Redlock of %i, a minority of it killed and back without data: nobody beside another, fences in order (rules 1 and 8)',
    async (count) => {
      const servers = await Promise.all(Array.from({ length: count }, () => startRedis()));
      stopping.push(() => Promise.all(servers.map((server) => server.stop())));
      const store = {
        module: 'stores/redlock/redlock-lease-store.js',
        export: 'RedlockLeaseStore',
        args: [servers.map(({ url }) => url), { maxTtl: 1_000 }],
      };
      const minority = servers.slice(0, (count - 1) / 2);
      const { overlaps, disorder } = await turnsAround(store, () =>
        Promise.all(minority.map((server) => server.restart())),
      );
      expect(overlaps).toEqual([]);
      expect(disorder).toEqual([]);
    },
  );

  it.each(['PostgresLeaseStore', 'PostgresAdvisoryLeaseStore'])(
    'on PostgreSQL, killed and recovered, %s: nobody beside another, fences in order (rules 1 and 8)',
    async (name) => {
      const server = await startPostgres();
      stopping.push(() => server.stop());
      const store = { module: 'stores/postgres/index.js', export: name, args: [server.url] };
      const { overlaps, disorder } = await turnsAround(store, () => server.restart());
      // A session's locks go with the server: who had one is told when its connection breaks.
      const isTold = name === 'PostgresAdvisoryLeaseStore';
      if (isTold) for (const { ms } of overlaps) expect(ms).toBeLessThanOrEqual(A_LOOK);
      else expect(overlaps).toEqual([]);
      expect(disorder).toEqual([]);
    },
  );

  it('on three etcd members, the leader killed: nobody beside another, fences in order (rules 1 and 8)', async () => {
    const cluster = await startEtcdCluster(3);
    stopping.push(() => cluster.stop());
    const store = {
      module: 'stores/etcd/index.js',
      export: 'EtcdLeaseStore',
      args: [{ endpoints: cluster.urls }],
    };
    const { overlaps, disorder } = await turnsAround(
      store,
      async () => (await cluster.leader()).kill(),
      ETCD_TTL,
    );
    expect(overlaps).toEqual([]);
    expect(disorder).toEqual([]);
  });
});
