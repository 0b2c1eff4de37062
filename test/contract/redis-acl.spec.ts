import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Grant, Refusal } from '../../lib/stores/lease-store.js';
import { slotOf } from '../../lib/stores/redis/cluster/slot.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startPrimaries, type RedisCluster } from '../support/redis-cluster.js';
import { REPLICATES_AT_ONCE, startReplica } from '../support/redis-sentinel.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { Waiter } from '../support/waiter.js';

/** What a Redis user must be allowed, as in the documentation. With a database other than 0 also `+select`. */
export const MINIMAL_ACL =
  '-@all +info +time +evalsha +eval +get +set +setrange +hget +hgetall +hset +hdel +pexpire +exists ' +
  '+zadd +zcard +zpopmin +zrange +zrangebyscore +zrem +zscore +scan';

/** What it must be allowed beside that to be told of its turn instead of asking for it. */
export const PUSH_ACL = '&nestjs-lease:* +publish +subscribe +pubsub|numsub';

/** And in a cluster. */
export const CLUSTER_ACL =
  '+cluster|slots +cluster|info +asking +ssubscribe +sunsubscribe +spublish +pubsub|shardnumsub';

const COMMANDS = MINIMAL_ACL.match(/\+\w+/g)!.map((word) => word.slice(1));

/** All that the library ever asks of a Redis. */
async function useAll(
  admin: Redis,
  store: RedisLeaseStore,
  name: string,
  isGiven = true,
): Promise<void> {
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
  await useLine(store, `lease/${name} line`, isGiven);
}

/** Waits for a key that is held, in line if it may, and gets it when it is released. */
async function useLine(store: RedisLeaseStore, key: string, isGiven: boolean): Promise<void> {
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
  // Or it is told to ask for it.
  await until(async () => (isGiven ? grant : (await enqueue()).granted));
  await store.release(claim, {});
}

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

  it('is the one in the documentation', () => {
    const text = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');
    const words = /^ACL SETUSER leases on >secret (.*)$/m.exec(text)![1]!.split(' ');
    const rules = `~lease:* resetchannels ${MINIMAL_ACL} ${PUSH_ACL}`.split(' ');
    expect(words.toSorted()).toEqual(rules.toSorted());
    expect(text).toContain(`\`${CLUSTER_ACL}\``);
  });

  it('is enough for all that the library does', async () => {
    const store = await storeOf('minimal', MINIMAL_ACL);
    const warn = jest.spyOn(console, 'warn');
    await useAll(admin, store, 'minimal');
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
    await store.close();
  });

  it.each(COMMANDS.filter((command) => command !== 'info'))(
    'has nothing to spare: without %s it does not work',
    async (command) => {
      const store = await storeOf(`no-${command}`, MINIMAL_ACL, ` -${command}`);
      await expect(useAll(admin, store, command)).rejects.toThrow(
        new RegExp(`no permissions|can't run this command|refused: unavailable`),
      );
      await store.close();
    },
  );

  it('has nothing to spare: without info the client complains on the console', async () => {
    const store = await storeOf('no-info', MINIMAL_ACL, ' -info');
    const warn = jest.spyOn(console, 'warn').mockReturnValue();
    await useAll(admin, store, 'no-info');
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

describe('The minimal ACL in a cluster', () => {
  let cluster: RedisCluster;
  let admin: Redis;
  beforeAll(async () => {
    cluster = await startPrimaries(2);
    admin = new Redis({ port: cluster.nodes[0]!.port });
  }, 20_000);
  afterAll(async () => {
    admin.disconnect();
    await cluster.stop();
  });

  const storeOf = async (username: string, more = ''): Promise<RedisLeaseStore> => {
    const rules = `${MINIMAL_ACL} ${PUSH_ACL} ${CLUSTER_ACL}${more}`.split(' ');
    const password = `pw-${username}`;
    const all = ['reset', 'on', `>${password}`, '~lease:*', 'resetchannels', ...rules];
    for (const node of cluster.nodes) await cluster.ask(node, 'ACL', 'SETUSER', username, ...all);
    return new RedisLeaseStore({ cluster: cluster.seeds, username, password });
  };
  /** A key that the node has which forgets its scripts. */
  const keyOf = (name: string): string => {
    const keys = Array.from({ length: 100 }, (_, i) => `${name} ${i}`);
    return keys.find((key) => slotOf(key) < 8_192 && slotOf(`${key} line`) < 8_192)!;
  };
  /** Of a slot that is on its way the node that it goes to is asked. */
  const takeOnTheWay = async (store: RedisLeaseStore, key: string): Promise<void> => {
    const slot = slotOf(key);
    const [source, target] = cluster.nodes as [RedisServer, RedisServer];
    await cluster.beginMove(slot, source, target);
    try {
      await take(store, `lease/${key}`);
    } finally {
      for (const node of cluster.nodes)
        await cluster.ask(node, 'CLUSTER', 'SETSLOT', slot, 'STABLE');
    }
  };
  /** One waits; it is told of its turn when `told`, and else finds it when it asks. */
  const waits = async (store: RedisLeaseStore, name: string, told: boolean): Promise<string> => {
    const held = await take(store, `lease/${name}`);
    const waiter = new Waiter(store, held.key);
    await waiter.stand();
    const node = await cluster.ownerOf(`lease:{${name}}`);
    const line = await cluster.ask(node, 'ZRANGE', `lease:{${name}}:line`, 0, -1);
    expect(await store.release(held, {})).toBe(true);
    if (told) await waiter.turn();
    else expect(await waiter.ask()).toMatchObject({ granted: true });
    expect(waiter.grant === undefined).toBe(!told);
    return String(line).includes(':{') ? 'shard' : 'plain';
  };

  it('is enough for all that the library does', async () => {
    const store = await storeOf('minimal');
    await useAll(admin, store, keyOf('minimal'));
    expect(await waits(store, 'minimal waits', true)).toBe('shard');
    await takeOnTheWay(store, keyOf('minimal moves'));
    const denied = (await admin.acl('LOG')) as unknown[][];
    expect(
      denied.filter((entry) => entry.includes('minimal') && !entry.includes('client|setname')),
    ).toEqual([]);
    await store.close();
  });

  it.each(['cluster|slots', 'cluster|info'])(
    'has nothing to spare: without %s it does not work',
    async (command) => {
      const store = await storeOf(`no-${command}`, ` -${command}`);
      await expect(store.open()).rejects.toMatchObject({
        cause: expect.objectContaining({ message: expect.stringContaining('NOPERM') }),
      });
      await store.close();
    },
  );

  it('has nothing to spare: without asking nothing new can be taken in a slot that is on its way', async () => {
    const store = await storeOf('no-asking', ' -asking');
    await expect(takeOnTheWay(store, keyOf('no asking'))).rejects.toThrow();
    await store.close();
  });

  it.each<[string, boolean, string]>([
    ['ssubscribe', true, 'plain'],
    ['spublish', false, 'shard'],
    ['pubsub|shardnumsub', false, 'shard'],
    ['sunsubscribe', true, 'shard'],
  ])(
    'may spare %s: those who wait are told: %p, by a channel of this kind: %s',
    async (command, told, kind) => {
      const store = await storeOf(`without-${command}`, ` -${command}`);
      expect(await waits(store, `without ${command}`, told)).toBe(kind);
      await store.close();
    },
  );
});

describe('The minimal ACL of a user that waits for replicas', () => {
  it('is the same with wait, and nothing is granted without', async () => {
    const primary = await startRedis({ args: REPLICATES_AT_ONCE });
    const replica = await startReplica(primary);
    const admin = new Redis(primary.url);
    for (const [user, more] of [
      ['with', '+wait'],
      ['without', '-wait'],
    ] as const) {
      const rules = [
        'on',
        `>${user}`,
        '~lease:*',
        ...`${MINIMAL_ACL} ${PUSH_ACL}`.split(' '),
        more,
      ];
      await admin.acl('SETUSER', user, ...rules);
      const store = new RedisLeaseStore(`redis://${user}:${user}@127.0.0.1:${primary.port}`, {
        waitForReplicas: 1,
        replicaTimeout: '1s',
      });
      if (user === 'with') await useAll(admin, store, user, false);
      else await expect(store.acquire(claimOf('lease/without'))).rejects.toThrow('NOPERM');
      await store.close();
    }
    admin.disconnect();
    await Promise.all([replica.stop(), primary.stop()]);
  });
});
