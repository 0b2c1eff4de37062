import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Grant, Refusal } from '../../lib/stores/lease-store.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

/** What a Redis user must be allowed, as in the documentation. With a database other than 0 also `+select`. */
export const MINIMAL_ACL =
  '-@all +info +time +evalsha +eval +get +set +setrange +hget +hgetall +hset +hdel +pexpire +exists ' +
  '+zadd +zcard +zpopmin +zrange +zrangebyscore +zrem +zscore +scan';

/** What it must be allowed beside that to be told of its turn instead of asking for it. */
export const PUSH_ACL = '&nestjs-lease:* +publish +subscribe +pubsub|numsub';

const COMMANDS = MINIMAL_ACL.match(/\+\w+/g)!.map((word) => word.slice(1));

describe('The minimal ACL of the Redis user', () => {
  let server: RedisServer;
  let admin: Redis;

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  const storeOf = async (user: string, rule: string, more = ''): Promise<RedisLeaseStore> => {
    const keys = ['~lease:*', 'resetchannels'];
    const rules = `${rule} ${PUSH_ACL}${more}`.split(' ');
    await admin.acl('SETUSER', user, 'reset', 'on', `>pw-${user}`, ...keys, ...rules);
    return new RedisLeaseStore(`redis://${user}:pw-${user}@127.0.0.1:${server.port}`);
  };

  /** All that the library ever asks of a Redis. */
  const useAll = async (store: RedisLeaseStore, name: string): Promise<void> => {
    // Forgotten, so that EVAL is needed and not only EVALSHA.
    await admin.script('FLUSH');
    const alone = await take(store, `lease/${name}`, { once: 'tick' });
    await store.renew([alone]);
    await store.inspect(alone.key);
    for await (const _ of store.list({ prefix: 'lease/' }));
    await store.release(alone, { keepFor: 1, done: { once: 'tick', remember: 1_000 } });
    const key = `lease:election/${name}`;
    await take(store, key, { permits: 2, ttl: 50 });
    const shared = await take(store, key, { permits: 2 });
    await store.acquire(claimOf(key, { permits: 2 }));
    await store.renew([shared]);
    await until(async () => (await store.inspect(key))?.holders.length === 1);
    // Clears away what is left of the one that expired.
    await take(store, key, { permits: 2 });
    await store.release(shared, { keepFor: 1 });
    await useLine(store, `lease/${name} line`);
  };

  /** Waits for a key that is held, in line if it may, and gets it when it is released. */
  const useLine = async (store: RedisLeaseStore, key: string): Promise<void> => {
    const held = await take(store, key);
    const claim = claimOf(key);
    let calls = 0;
    let grant: Grant | undefined;
    const enqueue = (): Promise<Grant | Refusal> =>
      store.enqueue(claim, (told) => {
        calls++;
        grant ??= told;
      });
    await enqueue();
    // Called when it listens.
    await until(() => calls > 0);
    expect(await enqueue()).toMatchObject({ reason: 'held', inLine: true });
    await store.release(held, {});
    await until(() => grant);
    await store.release(claim, {});
  };

  it('is the one in the documentation', () => {
    const text = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');
    const words = /^ACL SETUSER leases on >secret (.*)$/m.exec(text)![1]!.split(' ');
    const rules = `~lease:* resetchannels ${MINIMAL_ACL} ${PUSH_ACL}`.split(' ');
    expect(words.toSorted()).toEqual(rules.toSorted());
  });

  it('is enough for all that the library does', async () => {
    const store = await storeOf('minimal', MINIMAL_ACL);
    const warn = jest.spyOn(console, 'warn');
    await useAll(store, 'minimal');
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
    await store.close();
  });

  it.each(COMMANDS.filter((command) => command !== 'info'))(
    'has nothing to spare: without %s it does not work',
    async (command) => {
      const store = await storeOf(`no-${command}`, MINIMAL_ACL, ` -${command}`);
      await expect(useAll(store, command)).rejects.toThrow(
        new RegExp(`no permissions|can't run this command|refused: unavailable`),
      );
      await store.close();
    },
  );

  it('has nothing to spare: without info the client complains on the console', async () => {
    const store = await storeOf('no-info', MINIMAL_ACL, ' -info');
    const warn = jest.spyOn(console, 'warn').mockReturnValue();
    await useAll(store, 'no-info');
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('INFO'));
    warn.mockRestore();
    await store.close();
  });

  it.each([
    ['the channels', 'resetchannels'],
    ['subscribe', '-subscribe'],
  ])('may spare %s: then those who wait poll', async (what, rule) => {
    const store = await storeOf(`poll-${what.length}`, MINIMAL_ACL, ` ${rule}`);
    const held = await take(store, `lease/poll ${what}`);
    const claim = claimOf(held.key);
    const onTurn = jest.fn();
    await store.enqueue(claim, onTurn);
    const denied = async (): Promise<boolean> =>
      ((await admin.acl('LOG')) as unknown[][]).some(
        (entry) =>
          entry.includes(`poll-${what.length}`) &&
          entry.some((field) => /^(subscribe$|nestjs-lease:)/.test(String(field))),
      );
    await until(denied);
    expect(await store.enqueue(claim, onTurn)).toMatchObject({ reason: 'held', inLine: false });
    await store.release(held, {});
    expect(await store.enqueue(claim, onTurn)).toMatchObject({ granted: true });
    expect(onTurn).not.toHaveBeenCalled();
    expect(await store.release(claim, {})).toBe(true);
    await store.close();
  });

  it('may spare publish: then a release tells nobody, and who asks again has the key', async () => {
    const store = await storeOf('silent', MINIMAL_ACL, ' -publish');
    const held = await take(store, 'lease/silent');
    const claim = claimOf(held.key);
    const onTurn = jest.fn();
    await store.enqueue(claim, onTurn);
    await until(() => onTurn.mock.calls.length > 0);
    await store.enqueue(claim, onTurn);
    expect(await store.release(held, {})).toBe(true);
    expect(await store.enqueue(claim, onTurn)).toMatchObject({ granted: true });
    await store.close();
  });

  it('keeps the user in its own namespace', async () => {
    const store = await storeOf('confined', MINIMAL_ACL);
    await expect(store.acquire(claimOf('other/key'))).rejects.toThrow(/NOPERM|permission/);
    await store.close();
  });

  it('needs +select for another database, and does not fall back to database 0 without it', async () => {
    const without = await storeOf('no-select', MINIMAL_ACL);
    await without.close();
    const url = `redis://no-select:pw-no-select@127.0.0.1:${server.port}/2`;
    const confined = new RedisLeaseStore(url);
    await expect(confined.acquire(claimOf('lease/db'))).rejects.toThrow();
    expect(await admin.keys('lease:{db}*')).toEqual([]);
    await confined.close();

    await admin.acl('SETUSER', 'no-select', '+select');
    const allowed = new RedisLeaseStore(url);
    await take(allowed, 'lease/db');
    await allowed.close();
    expect(await admin.keys('lease:{db}*')).toEqual([]);
  });
});
