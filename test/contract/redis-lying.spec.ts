import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { BAD_REPLY } from '../../lib/lease.messages.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf } from '../support/claims.js';
import { bulk, startFakeRedis, type FakeRedis, type Script } from '../support/fake-redis.js';
import { until } from '../support/until.js';

const NOW = 1_700_000_000_000;

/** Answers from which nothing follows. */
const NONSENSE: readonly [what: string, reply: string][] = [
  ['null', '$-1\r\n'],
  ['a null array', '*-1\r\n'],
  ['an empty array', '*0\r\n'],
  ['a string', '+OK\r\n'],
  ['a text', bulk('1')],
  ['a number that is no verdict', ':42\r\n'],
  ['a negative number', ':-1\r\n'],
  ['a number beyond all bounds', ':99999999999999999999\r\n'],
  ['an array of one', '*1\r\n:1\r\n'],
  ['an array of nulls', '*3\r\n$-1\r\n$-1\r\n$-1\r\n'],
  ['an array of texts', `*3\r\n${bulk('1')}${bulk(`${NOW}`)}${bulk('7')}`],
  ['nested arrays', '*3\r\n*1\r\n:1\r\n*1\r\n:2\r\n*1\r\n:3\r\n'],
  ['an error', '-ERR no\r\n'],
  ['bytes of no protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
];

/** Grants, all but for one thing. */
const NO_GRANTS: readonly [what: string, reply: string][] = [
  ...NONSENSE,
  ['a grant without a fence', `*2\r\n:${NOW}\r\n:1\r\n`],
  ['a grant with a null for a fence', `*3\r\n:${NOW}\r\n:1\r\n$-1\r\n`],
  ['a grant with fence 0', `*3\r\n:${NOW}\r\n:1\r\n:0\r\n`],
  ['a grant with a negative fence', `*3\r\n:${NOW}\r\n:1\r\n:-5\r\n`],
  ['a grant with a fence beyond all bounds', `*3\r\n:${NOW}\r\n:1\r\n:9007199254740993\r\n`],
  ['a grant with a text for a fence', `*3\r\n:${NOW}\r\n:1\r\n${bulk('fence')}`],
  ['a verdict that is not known', `*3\r\n:${NOW}\r\n:9\r\n:7\r\n`],
  ['a fence alone that is too short', bulk('170000000000000')],
  ['a fence alone that is too long', bulk('17000000000000000')],
  ['a fence alone beyond all bounds', bulk('9999999999999999')],
  ['a fence alone that is a number', ':1700000000000000\r\n'],
  ['answers for two', `*5\r\n:${NOW}\r\n:1\r\n:7\r\n:1\r\n:8\r\n`],
];

describe('A server that answers nonsense', () => {
  let fake: FakeRedis;
  let store: RedisLeaseStore;
  let script: Script;

  beforeEach(async () => {
    script = () => undefined;
    fake = await startFakeRedis((command) => script(command));
    store = new RedisLeaseStore(fake.url);
  });
  afterEach(async () => {
    await store.close();
    await fake.close();
  });

  const answering = (reply: string): void => {
    script = ([name]) => (name === 'EVALSHA' || name === 'EVAL' ? reply : undefined);
  };

  it.each(NO_GRANTS)('grants nothing: %s', async (_, reply) => {
    answering(reply);
    for (const permits of [1, 2]) {
      await expect(store.acquire(claimOf('lease/a', { permits }))).rejects.toThrow();
    }
  });

  it.each(NO_GRANTS)('gives no lease: %s (rule 9)', async (_, reply) => {
    answering(reply);
    const options = { store, namespace: 'lease', instance: 'test', ttl: 300, wait: 0 };
    const engine = new LeaseEngine(options);
    await expect(engine.tryAcquire('a')).rejects.toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
    await engine.close(0, 0);
  });

  it.each([
    ...NONSENSE,
    ['too few', `*2\r\n:${NOW}\r\n:1\r\n`],
    ['too many', '*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n'],
  ] as const)('neither renews nor takes away: %s (rule 6)', async (_, reply) => {
    answering(reply);
    const holds = [claimOf('lease/a'), claimOf('lease/b')];
    await expect(store.renew(holds)).rejects.toThrow();
  });

  it('does not know of an outcome it never heard of (rule 6)', async () => {
    answering(`*3\r\n:${NOW}\r\n:2\r\n:1\r\n`);
    const holds = [claimOf('lease/a'), claimOf('lease/b')];
    expect(await store.renew(holds)).toEqual(['unknown', 'renewed']);
  });

  it.each(NONSENSE)('frees nothing: %s (rule 7)', async (_, reply) => {
    answering(reply);
    await expect(store.release(claimOf('lease/a'), {})).rejects.toThrow();
  });

  it.each(NONSENSE.filter(([what]) => what !== 'an array of one'))(
    'shows nothing: %s',
    async (_, reply) => {
      answering(reply);
      const shown = await store.inspect('lease/a').catch(() => null);
      expect(shown).toBeNull();
    },
  );

  it.each(NONSENSE)('has no clock to make a deadline from: %s (rule 2)', async (_, reply) => {
    script = ([name]) => (name === 'TIME' ? reply : undefined);
    await expect(store.acquire(claimOf('lease/a', { patience: 200 }))).rejects.toThrow();
    expect(fake.commands.map(([name]) => name)).not.toContain('EVALSHA');
  });

  it('is told from one that is merely busy (rule 9)', async () => {
    answering('+OK\r\n');
    await expect(store.acquire(claimOf('lease/a'))).rejects.toThrow(BAD_REPLY('acquire'));
  });

  it('may stop in the middle of an answer', async () => {
    answering('*3\r\n:1\r\n:17');
    const refused = expect(store.acquire(claimOf('lease/a'))).rejects.toThrow();
    await until(() => fake.commands.some(([name]) => name === 'EVALSHA'));
    fake.dropConnections();
    await refused;
  });
});
