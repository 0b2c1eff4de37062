import { Redis, type RedisOptions } from 'ioredis';
import { describe, expect, it } from '@jest/globals';
import { NOT_FOR_THREAD } from '../../../../lib/lease.messages.js';
import { RedisLeaseStore } from '../../../../lib/stores/redis/redis-lease-store.js';

/** What a thread would be given, as it arrives there. */
const inThread = (connection: ConstructorParameters<typeof RedisLeaseStore>[0]) =>
  structuredClone(new RedisLeaseStore(connection, { fenceRetention: '1h' }).thread());

describe('a Redis store for a thread', () => {
  it('is made by the same class, from the same URL and with the same options', () => {
    const url = 'redis://user:secret@127.0.0.1:6380/3';
    const { module, export: name, args } = inThread(url);
    expect(module).toMatch(/^file:.*redis-lease-store/);
    expect(name).toBe('RedisLeaseStore');
    expect(args).toEqual([url, { fenceRetention: '1h' }]);
  });

  it('is made from plain options as they are', () => {
    const options = { host: '127.0.0.1', port: 6380, db: 3, keyPrefix: 'app:', tls: { ca: 'PEM' } };
    expect(inThread(options).args[0]).toEqual(options);
  });

  it('goes where a client goes to, with its database of now, its prefix, its user and TLS', async () => {
    const client = new Redis({
      host: '127.0.0.1',
      port: 6380,
      db: 1,
      keyPrefix: 'app:',
      lazyConnect: true,
      username: 'user',
      password: 'secret',
      tls: { servername: 'redis' },
    });
    Object.assign(client, { condition: { select: 3 } });
    const [to] = inThread(client as never).args as [RedisOptions];
    expect(to).toMatchObject({
      host: '127.0.0.1',
      port: 6380,
      db: 3,
      keyPrefix: 'app:',
      username: 'user',
      password: 'secret',
      tls: { servername: 'redis' },
    });
    client.disconnect();
  });

  it('takes our settings instead of a client’s, where ours count', () => {
    const retryStrategy = (): number => 10_000;
    const client = new Redis({ lazyConnect: true, connectTimeout: 60_000, retryStrategy });
    const [to] = inThread(client as never).args as [RedisOptions];
    expect(to).toMatchObject({ connectTimeout: 2_000, connectionName: 'nestjs-lease' });
    expect(to.retryStrategy).toBeUndefined();
    client.disconnect();
  });

  it('of a client behind Sentinel goes to the same sentinels', () => {
    const sentinels = [{ host: '127.0.0.1', port: 26_379 }];
    const client = new Redis({ lazyConnect: true, sentinels, name: 'mymaster' });
    const [to] = inThread(client as never).args as [RedisOptions];
    expect(to).toMatchObject({ sentinels, name: 'mymaster' });
    client.disconnect();
  });

  it.each<[string, RedisOptions]>([
    ['retryStrategy', { retryStrategy: () => 1 }],
    ['reconnectOnError', { reconnectOnError: () => true }],
    ['tls', { tls: { checkServerIdentity: () => undefined } }],
    ['natMap', { natMap: () => null }],
  ])('refuses options with a function in "%s", by its name', (name, options) => {
    const store = new RedisLeaseStore({ host: '127.0.0.1', ...options });
    expect(() => store.thread()).toThrow(new TypeError(NOT_FOR_THREAD(name)));
  });

  it('refuses a client whose behaviour is a function that counts', () => {
    const client = new Redis({ lazyConnect: true, reconnectOnError: () => true });
    const store = new RedisLeaseStore(client as never);
    expect(() => store.thread()).toThrow(new TypeError(NOT_FOR_THREAD('reconnectOnError')));
    client.disconnect();
  });
});
