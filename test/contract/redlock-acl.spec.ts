import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, ask, startNodes } from '../support/redlock-nodes.js';
import { until } from '../support/until.js';

/** What the user of each node must be allowed, as in the documentation. */
const KEYS = '~lease:* ~nestjs-lease:redlock resetchannels';
const COMMANDS = 'eval evalsha info time scan exists set del hget hmget hset pexpire pttl'.split(
  ' ',
);
const MINIMAL_ACL = `${KEYS} -@all ${COMMANDS.map((command) => `+${command}`).join(' ')}`;
const USER = 'leases';

describe('The minimal ACL of the user of a Redlock node', () => {
  let servers: RedisServer[];

  beforeAll(async () => {
    servers = await startNodes(3);
  });
  beforeEach(async () => {
    await Promise.all(servers.map((server) => ask(server, (c) => c.flushall())));
    await ask(servers[0]!, (client) => client.acl('LOG', 'RESET'));
    await admitAll(servers);
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  const allow = async (rules: string): Promise<void> => {
    const setUser = (server: RedisServer): Promise<unknown> =>
      ask(server, (client) =>
        client.acl('SETUSER', USER, 'reset', 'on', '>secret', ...rules.split(' ')),
      );
    await Promise.all(servers.map(setUser));
  };

  const storeFor = async (rules: string): Promise<RedlockLeaseStore> => {
    await allow(rules);
    const urls = servers.map(({ port }) => `redis://${USER}:secret@127.0.0.1:${port}`);
    return new RedlockLeaseStore(urls);
  };

  /** All that the store ever asks of a node. */
  const useAll = async (store: RedlockLeaseStore): Promise<void> => {
    const [forgetful] = servers as [RedisServer];
    // Forgotten, so that EVAL is needed and not only EVALSHA.
    await Promise.all(servers.map((server) => ask(server, (c) => c.script('FLUSH'))));
    await store.open();
    const held = await take(store, 'lease/a', { once: 'tick' });
    expect(await store.acquire(claimOf('lease/a'))).toMatchObject({ reason: 'held' });
    await ask(forgetful, (client) => client.del('lease:{a}'));
    expect(await store.renew([held])).toEqual(['renewed']);
    await until(() => ask(forgetful, (client) => client.exists('lease:{a}')));
    expect(await store.inspect('lease/a')).not.toBeNull();
    for await (const { key } of store.list({ prefix: 'lease/' })) expect(key).toBe('lease/a');
    const how = { keepFor: 1, done: { once: 'tick', remember: 1_000 } };
    expect(await store.release(held, how)).toBe(true);
    const again = await take(store, 'lease/b');
    expect(await store.release(again, {})).toBe(true);
    // It votes again after its time, by what the others know.
    await ask(forgetful, (client) => client.hset('nestjs-lease:redlock', 'admitted', 0));
    await expect(store.inspect('lease/b')).resolves.toBeNull();
    const admitted = (): Promise<string | null> =>
      ask(forgetful, (client) => client.hget('nestjs-lease:redlock', 'admitted'));
    await until(async () => (await admitted()) === '1');
  };

  it('is the one in the documentation', () => {
    const text = readFileSync(new URL('../../docs/redlock.md', import.meta.url), 'utf8');
    const words = /^ACL SETUSER leases on >secret (.*)$/m.exec(text)![1]!.split(' ');
    expect(words.toSorted()).toEqual(MINIMAL_ACL.split(' ').toSorted());
  });

  it('is enough for all that the store does', async () => {
    const store = await storeFor(MINIMAL_ACL);
    await useAll(store);
    await store.close();
  });

  it.each(COMMANDS)('has nothing to spare: without %s it does not work', async (command) => {
    // ioredis complains of INFO itself.
    const warn = jest.spyOn(console, 'warn').mockReturnValue();
    const store = await storeFor(`${MINIMAL_ACL} -${command}`);
    await expect(useAll(store)).rejects.toThrow();
    const denied = await ask(servers[0]!, (client) => client.acl('LOG'));
    expect(JSON.stringify(denied)).toContain(`"${command}"`);
    await store.close();
    warn.mockRestore();
  });

  it.each(['~lease:*', '~nestjs-lease:redlock'])(
    'has nothing to spare: without %s it does not work',
    async (keys) => {
      const store = await storeFor(MINIMAL_ACL.replace(keys, '~nothing'));
      await expect(useAll(store)).rejects.toThrow();
      await store.close();
    },
  );

  it('keeps the user in its own namespace', async () => {
    const store = await storeFor(MINIMAL_ACL);
    expect(await store.acquire(claimOf('other/key'))).toMatchObject({ reason: 'unavailable' });
    await store.close();
  });
});
