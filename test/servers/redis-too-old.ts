import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { REDIS_TOO_OLD, REDLOCK_NO_MAJORITY } from '../../lib/lease.messages.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { claimOf } from '../support/claims.js';
import { adminOf } from '../support/redis-sentinel.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

/** For a Redis that is older than 6.2, which `npm test` has none of: run by `npm run servers`. */
describe('A Redis that is too old', () => {
  let server: RedisServer;
  let version: string;
  const stores: (RedisLeaseStore | RedlockLeaseStore)[] = [];
  beforeAll(async () => {
    server = await startRedis();
    const admin = adminOf(server);
    version = /^redis_version:(.+?)\r?$/m.exec((await admin.info('server')) as string)![1]!;
    admin.disconnect();
  });
  afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));
  afterAll(() => server.stop());

  function storeOf(): RedisLeaseStore {
    const store = new RedisLeaseStore(server.url);
    stores.push(store);
    return store;
  }

  it('is named at the start', async () => {
    await expect(storeOf().open()).rejects.toThrow(REDIS_TOO_OLD(version));
  });

  it('is named by a claim', async () => {
    const claim = claimOf('lease/old');
    await expect(storeOf().acquire(claim)).rejects.toThrow(REDIS_TOO_OLD(version));
  });

  it('is named by the nodes of a Redlock', async () => {
    const more = await Promise.all([startRedis(), startRedis()]);
    const redlock = new RedlockLeaseStore([server, ...more].map(({ url }) => url));
    stores.push(redlock);
    await expect(redlock.open()).rejects.toMatchObject({
      message: REDLOCK_NO_MAJORITY(3, 3),
      cause: { message: REDIS_TOO_OLD(version) },
    });
    await Promise.all(more.map((node) => node.stop()));
  });
});
