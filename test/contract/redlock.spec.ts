import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, startNodes, urlsOf } from '../support/redlock-nodes.js';

for (const count of [3, 5]) {
  describe(`With ${count} nodes`, () => {
    let servers: RedisServer[];
    beforeAll(async () => {
      servers = await startNodes(count);
      await admitAll(servers);
    });
    afterAll(() => Promise.all(servers.map((server) => server.stop())));

    describeLeaseStore(
      `RedlockLeaseStore on ${count} nodes`,
      () => new RedlockLeaseStore(urlsOf(servers), { maxTtl: '5m' }),
      {
        describe,
        it,
        freeze: () => Promise.all(servers.map((server) => server.pause())),
        thaw: async () => servers.forEach((server) => server.resume()),
      },
    );
  });
}

describe('With a key prefix and a database', () => {
  const keyPrefix = 'app[1]{x}*:';
  let servers: RedisServer[];
  beforeAll(async () => {
    servers = await startNodes(3);
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  describeLeaseStore(
    'RedlockLeaseStore without a quarantine, with a key prefix and a database',
    () =>
      new RedlockLeaseStore(
        servers.map(({ port }) => ({ port, keyPrefix, db: 3 })),
        { maxTtl: '5m', quarantine: false },
      ),
    {
      describe,
      it,
      loseData: () => Promise.all(servers.map((server) => server.restart())),
    },
  );
});
