import { describe, expect, it } from '@jest/globals';
import { EtcdLeaseStore } from '../../../lib/stores/etcd/index.js';
import { PostgresFenceGate } from '../../../lib/postgres.js';
import { RedisFenceGate, RedisLeaseStore, RedlockLeaseStore } from '../../../lib/redis.js';
import { BAD_OPTION, BAD_REDIS_GATE_CLIENT, UNKNOWN_OPTION } from '../../../lib/lease.messages.js';

const NODES = ['redis://redis-a', 'redis://redis-b', 'redis://redis-c'];

describe('a misspelt option would be a promise silently not kept', () => {
  it('of RedisLeaseStore it is named', () => {
    const known = ['fenceRetention', 'waitForReplicas', 'replicaTimeout', 'quarantine'];
    const construct = (): unknown => new RedisLeaseStore(NODES[0], { quarantin: '30s' } as never);
    expect(construct).toThrow(new TypeError(UNKNOWN_OPTION('quarantin', known)));
  });

  it('of RedlockLeaseStore it is named', () => {
    const construct = (): unknown => new RedlockLeaseStore(NODES, { maxTTL: '5m' } as never);
    expect(construct).toThrow(new TypeError(UNKNOWN_OPTION('maxTTL', ['maxTtl', 'quarantine'])));
  });

  it('of EtcdLeaseStore it is named', () => {
    const known = ['endpoints', 'username', 'password', 'tls', 'prefix'];
    const options = { endpoints: 'http://etcd:2379', prefixx: 'shop/' };
    expect(() => new EtcdLeaseStore(options as never)).toThrow(
      new TypeError(UNKNOWN_OPTION('prefixx', known)),
    );
  });

  it('of PostgresFenceGate it is named, and so are all that there are', () => {
    const known = ['pool', 'table', 'retention', 'createTable'];
    expect(() => new PostgresFenceGate({ pol: {} } as never)).toThrow(
      new TypeError(UNKNOWN_OPTION('pol', known)),
    );
  });
});

describe('a URL where a client belongs does not take its password into the error (rule 15)', () => {
  const hidden = 'redis://…@redis:6379';

  it.each(['redis://:secret@redis:6379', `redis://user:${'secret'.repeat(20)}@redis:6379`])(
    '%s',
    (url) => {
      expect(() => new RedisFenceGate(url as never)).toThrow(
        new TypeError(
          `RedisFenceGate was given "${hidden}"; it needs a client of ioredis, or a cluster of it.`,
        ),
      );
      expect(BAD_REDIS_GATE_CLIENT(url)).toBe(BAD_REDIS_GATE_CLIENT(hidden));
      expect(() => new PostgresFenceGate({ pool: url as never })).toThrow(
        new TypeError(BAD_OPTION('pool', hidden, 'a Pool of pg')),
      );
    },
  );
});
