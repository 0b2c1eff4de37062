import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import {
  BAD_CLUSTER,
  BAD_REDIS_CONNECTION,
  BAD_REDIS_URL,
  NOT_CONNECTED,
} from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { connectionFor } from '../../lib/stores/redis/redis-connection.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { realProcess } from '../support/real-process.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

let server: RedisServer;
let admin: Redis;
const stores: RedisLeaseStore[] = [];
const clients: Redis[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = clientOf({});
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  for (const client of clients.splice(1)) client.disconnect();
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

function storeOf(...args: ConstructorParameters<typeof RedisLeaseStore>): RedisLeaseStore {
  const store = new RedisLeaseStore(...args);
  stores.push(store);
  return store;
}

function clientOf(options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const client = new Redis(server.url, { retryStrategy: () => 20, ...options });
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

/** In which database the lease on `lease/<name>` is, by its name there. */
async function whereIs(name: string): Promise<string[]> {
  const found: string[] = [];
  for (let db = 0; db < 16; db++) {
    await admin.select(db);
    for (const key of await admin.keys(`*lease:{${name}}`)) found.push(`${db} ${key}`);
  }
  await admin.select(0);
  return found;
}

describe('A Redis store connects', () => {
  it('to a URL, with its database', async () => {
    await take(storeOf(`${server.url}/4`), 'lease/url');
    expect(await whereIs('url')).toEqual(['4 lease:{url}']);
  });

  it('with options, with their database and key prefix', async () => {
    await take(storeOf({ port: server.port, db: 5, keyPrefix: 'app:' }), 'lease/options');
    expect(await whereIs('options')).toEqual(['5 app:lease:{options}']);
  });

  it('where a client of the user’s goes, with its database and key prefix', async () => {
    await take(storeOf(clientOf({ db: 6, keyPrefix: 'app:' })), 'lease/client');
    expect(await whereIs('client')).toEqual(['6 app:lease:{client}']);
  });

  it('to the database that the user’s client selected at run time', async () => {
    const client = clientOf({ db: 1 });
    await client.select(7);
    await take(storeOf(client), 'lease/selected');
    expect(await whereIs('selected')).toEqual(['7 lease:{selected}']);
  });

  it('where a client goes that has not connected yet', async () => {
    const client = clientOf({ db: 8, lazyConnect: true });
    await take(storeOf(client), 'lease/lazy');
    expect(await whereIs('lazy')).toEqual(['8 lease:{lazy}']);
    expect(client.status).toBe('wait');
  });

  it('as the user of the user’s client', async () => {
    await admin.acl('SETUSER', 'tenant', 'reset', 'on', '>secret', '~lease:*', '+@all');
    await take(storeOf(clientOf({ username: 'tenant', password: 'secret' })), 'lease/tenant');
    const list = (await admin.client('LIST')) as string;
    expect(list).toMatch(/name=nestjs-lease .*user=tenant/);
  });

  it('whatever shape of replies the user’s client asks for', async () => {
    const client = clientOf({ stringNumbers: true, replyMapping: 'resp3' } as RedisOptions);
    const store = storeOf(client);
    const held = await take(store, 'lease/shape');
    expect(await store.renew([held])).toEqual(['renewed']);
    expect((await store.inspect(held.key))?.holders).toHaveLength(1);
    expect(await store.release(held, {})).toBe(true);
  });

  it('beside the user’s client, and never closes it', async () => {
    const client = clientOf({});
    const store = storeOf(client);
    await take(store, 'lease/beside');
    await store.close();
    expect(await client.ping()).toBe('PONG');
    expect(client.listenerCount('close')).toBe(0);
  });

  it('once for hundreds that ask at the start, without a warning', async () => {
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown): void => void warnings.push(warning);
    realProcess.on('warning', onWarning);
    const store = storeOf(server.url);
    await Promise.all(Array.from({ length: 200 }, (_, i) => take(store, `lease/start-${i}`)));
    realProcess.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('no more after it is closed, and leaves no connection behind', async () => {
    const own = await startRedis();
    const store = new RedisLeaseStore(own.url);
    await take(store, 'lease/closed');
    await store.close();
    await expect(store.acquire(claimOf('lease/closed'))).rejects.toThrow(NOT_CONNECTED());
    const observer = new Redis(own.url);
    expect(await observer.client('LIST')).not.toContain('name=nestjs-lease');
    observer.disconnect();
    await own.stop();
  });

  it('again when it was closed while the server was down', async () => {
    const own = await startRedis();
    const store = storeOf(own.url);
    await store.open();
    await own.kill();
    await expect(store.acquire(claimOf('lease/reopened', { patience: 200 }))).rejects.toThrow();
    await store.close();
    await own.start();
    await store.open();
    await take(store, 'lease/reopened');
    await store.close();
    await own.stop();
  });
});

describe('A connection of the store', () => {
  const unsafe: RedisOptions = {
    enableOfflineQueue: true,
    maxRetriesPerRequest: 20,
    autoResendUnfulfilledCommands: true,
    lazyConnect: false,
  };
  const safe = {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    lazyConnect: true,
  };

  it.each([
    ['a URL', () => connectionFor('redis://127.0.0.1:1')],
    ['options that say otherwise', () => connectionFor({ port: 1, ...unsafe })],
    ['a client that is set otherwise', () => connectionFor(clientOf({ ...unsafe }))],
  ])('of %s queues nothing and sends nothing again (rule 2)', (_, connect) => {
    expect(connect().options).toMatchObject(safe);
  });

  it('executes no claim after a reconnect that was made while the server was down (rule 2)', async () => {
    const own = await startRedis();
    const store = storeOf(own.url);
    await store.open();
    await own.kill();
    const claims = Array.from({ length: 5 }, (_, i) =>
      store.acquire(claimOf(`lease/late-${i}`, { patience: 100 })),
    );
    expect((await Promise.allSettled(claims)).map(({ status }) => status)).toEqual(
      claims.map(() => 'rejected'),
    );
    await own.start();
    await until(() =>
      store.open().then(
        () => true,
        () => false,
      ),
    );
    const observer = new Redis(own.url);
    expect(await observer.dbsize()).toBe(0);
    observer.disconnect();
    await store.close();
    await own.stop();
  });
});

describe('A Redis store that is given nonsense', () => {
  it.each([[undefined], [null], [42], [true], [[]], [() => 'redis://127.0.0.1']])(
    'says what it needs: %p',
    (nonsense) => {
      const construct = (): unknown => new RedisLeaseStore(nonsense as never);
      expect(construct).toThrow(TypeError);
      expect(construct).toThrow(BAD_REDIS_CONNECTION(nonsense));
    },
  );

  it.each([
    [''],
    ['localhost'],
    ['http://user:hunter2@localhost'],
    ['redis:// :hunter2@'],
    ['redis//:hunter2@localhost'],
    ['redis://:hunter2@localhost:99999'],
  ])('says what a URL is, and repeats no password: %p (rule 15)', (url) => {
    const construct = (): unknown => new RedisLeaseStore(url);
    expect(construct).toThrow(TypeError);
    expect(construct).toThrow(BAD_REDIS_URL());
    expect(BAD_REDIS_URL()).not.toContain('hunter2');
  });

  it.each<[unknown]>([
    [{ cluster: [] }],
    [{ cluster: 'redis-1:6379' }],
    [{ cluster: [{}] }],
    [{ cluster: [null] }],
    [{ isCluster: true, status: 'wait', options: {}, duplicate: jest.fn() }],
  ])('says what a cluster is: %p', (cluster) => {
    const construct = (): unknown => new RedisLeaseStore(cluster as never);
    expect(construct).toThrow(TypeError);
    expect(construct).toThrow(BAD_CLUSTER());
  });

  it.each([['0s'], ['soon'], [-1]])('names an impossible fenceRetention: %p', (fenceRetention) => {
    const construct = (): unknown =>
      new RedisLeaseStore(server.url, { fenceRetention: fenceRetention as '1s' });
    expect(construct).toThrow(/"fenceRetention"/);
  });
});

describe('Without a Redis to talk to', () => {
  const refusesThenWorks = async (store: RedisLeaseStore, repair: () => Promise<unknown>) => {
    const engine = new LeaseEngine({
      store,
      namespace: 'lease',
      instance: 'test',
      ttl: 600,
      wait: 0,
    });
    // As at boot: it cannot open, and goes on all the same.
    await expect(store.open()).rejects.toThrow(NOT_CONNECTED());
    const refusal = await engine.tryAcquire('boot').catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
    await repair();
    const lease = await until(() => engine.tryAcquire('boot').catch(() => null));
    await lease.release();
    await engine.close(0, 0);
    return refusal;
  };

  it('claims are refused as unavailable, and work when it is there (rule 9)', async () => {
    const own = await startRedis();
    await own.kill();
    await refusesThenWorks(storeOf(own.url), () => own.start());
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await own.stop();
  });

  it('that lets us in, they are too, and no password is told (rules 9 and 15)', async () => {
    await admin.acl('SETUSER', 'late', 'reset', 'on', '>other', '~*', '+@all');
    const store = storeOf(`redis://late:hunter2@127.0.0.1:${server.port}`);
    const refusal = await refusesThenWorks(store, () => admin.acl('SETUSER', 'late', '>hunter2'));
    expect(inspect(refusal, { depth: 10, showHidden: true })).not.toContain('hunter2');
  });

  it('a claim does not wait longer than it was to', async () => {
    const store = storeOf({ host: '127.0.0.1', port: 1, connectTimeout: 60_000 });
    await expect(store.acquire(claimOf('lease/nobody', { patience: 50 }))).rejects.toThrow(
      NOT_CONNECTED(),
    );
  });
});

describe('An error of Redis', () => {
  it.each<[string, () => Promise<unknown>, string]>([
    ['of another type', () => admin.lpush('lease:{foreign}', 'x'), 'WRONGTYPE'],
    ['of the same type', () => admin.set('lease:{foreign}', '"x"'), 'no lease'],
    ['as long as a record', () => admin.set('lease:{foreign}', '"'.repeat(60)), 'no lease'],
  ])('of a value %s under our name shows no owner token (rule 15)', async (_, write, what) => {
    await write();
    const store = storeOf(server.url);
    await store.open();
    for (const permits of [1, 2]) {
      const claim = claimOf('lease/foreign', { permits });
      const error: unknown = await store.acquire(claim).catch((reason: unknown) => reason);
      expect(String(error)).toContain(what);
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(claim.token);
    }
    await admin.del('lease:{foreign}');
  });

  it('shows no owner token when the server does not know the command (rule 15)', async () => {
    const own = await startRedis({ args: ['--rename-command', 'EVALSHA', ''] });
    const store = storeOf(own.url);
    const claim = claimOf('lease/a');
    const error: unknown = await store.acquire(claim).catch((reason: unknown) => reason);
    expect(String(error)).toContain('unknown command');
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(claim.token.slice(0, 9));
    await store.close();
    await own.stop();
  });
});
