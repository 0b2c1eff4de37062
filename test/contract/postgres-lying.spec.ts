import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BAD_POSTGRES_ANSWER } from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { LeaseStore } from '../../lib/stores/lease-store.js';
import { lockId } from '../../lib/stores/postgres/lock-id.js';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import {
  int16,
  int32,
  message,
  PID,
  ready,
  rows,
  startFakePostgres,
  type FakePostgres,
  type Script,
} from '../support/fake-postgres.js';
import { until } from '../support/until.js';

const NOW = '1700000000000000';
const LATER = '1700000060000000';
const FENCE = '1700000000000007';
const pid = String(PID);

type Fields = Record<string, string | null>;

/** What a sane server says to a claim that it grants: of both stores, each takes what it knows. */
const GRANT: Fields = {
  verdict: 'free',
  may: 'true',
  guarded: 'false',
  got: 'true',
  fence: FENCE,
  seen: NOW,
  free_at: null,
  until: LATER,
  now: NOW,
  pid,
};

const failure = (code: string): Buffer =>
  Buffer.concat([message('E', `SERROR\0VERROR\0C${code}\0Mno\0\0`), ready()]);

/** Answers from which nothing follows. */
const NONSENSE: readonly [what: string, answer: Buffer][] = [
  ['no rows', rows([])],
  ['a row of other columns', rows([{ a: '1', b: '2' }])],
  ['a row of nulls', rows([Object.fromEntries(Object.keys(GRANT).map((key) => [key, null]))])],
  ['a row of empty texts', rows([Object.fromEntries(Object.keys(GRANT).map((key) => [key, '']))])],
  ['a row of words', rows([Object.fromEntries(Object.keys(GRANT).map((key) => [key, 'x']))])],
  ['that it is done, without rows', Buffer.concat([message('C', 'SELECT 1\0'), ready()])],
  ['nothing but that it is ready', ready()],
  ['an empty query', Buffer.concat([message('I'), ready()])],
  [
    'a row without columns',
    Buffer.concat([
      message('T', int16(0)),
      message('D', int16(0)),
      message('C', 'SELECT 1\0'),
      ready(),
    ]),
  ],
  ['an error', failure('XX000')],
  ['an error without a word', Buffer.concat([message('E', '\0'), ready()])],
];

/** Answers after which the connection is good for nothing. */
const BROKEN: readonly [what: string, answer: Buffer][] = [
  ['bytes of no protocol', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['half a row', rows([GRANT]).subarray(0, 200)],
  ['a row before its columns', Buffer.concat([message('D', int16(1), int32(1), 'x'), ready()])],
];

/** Grants, all but for one thing. */
const NO_GRANTS: readonly [what: string, answer: Buffer][] = [
  ...NONSENSE,
  ...[
    null,
    '',
    '0',
    '-5',
    '1.5',
    '1e3',
    '0x10',
    ' 7',
    'fence',
    '9007199254740993',
    '1'.repeat(40),
  ].map((fence): [string, Buffer] => [`fence ${fence}`, rows([{ ...GRANT, verdict: 'x', fence }])]),
  ...[null, '', 'now', '17', '-1700000000000000', 'Infinity'].map((now): [string, Buffer] => [
    `the time ${now}`,
    rows([{ ...GRANT, now }]),
  ]),
];

describe.each([
  ['PostgresLeaseStore', PostgresLeaseStore],
  ['PostgresAdvisoryLeaseStore', PostgresAdvisoryLeaseStore],
])('A server that answers nonsense, to %s', (_, Store) => {
  let fake: FakePostgres;
  let store: LeaseStore;
  let lie: (what: 'claim' | 'renew' | 'release' | 'look' | 'time') => Buffer | undefined;

  beforeEach(async () => {
    lie = () => undefined;
    fake = await startFakePostgres((sql) => script(sql));
    store = new Store(fake.url);
  });
  afterEach(async () => {
    await store.close();
    await fake.close();
  });

  const script: Script = (sql) => {
    if (sql.startsWith('SELECT pg_backend_pid')) return rows([{ pid }]);
    if (sql.includes('set_config')) return rows([{ count: '5' }]);
    if (sql.includes('WITH asked') && !sql.includes('renewed'))
      return lie('claim') ?? rows([GRANT]);
    if (sql.includes('renewed AS')) {
      const locks = ['lease/a', 'lease/b'].map((key) => lockId('session', key)).join(',');
      const sane = rows([{ now: NOW, outcomes: 'renewed,renewed', renewed: '2', pid, locks }]);
      return lie('renew') ?? sane;
    }
    if (sql.includes('AS freed') && sql.includes('WITH')) return lie('release');
    if (sql.includes('a_insert')) return lie('time') ?? rows([{ now: NOW }]);
    return sql.includes('since') || sql.includes('holders') ? lie('look') : undefined;
  };

  const answering = (answer: Buffer, to: Parameters<typeof lie>[0]): void => {
    lie = (what) => (what === to ? answer : undefined);
  };
  const patience = 300;

  it.each([...NO_GRANTS, ...BROKEN])('grants nothing: %s (rule 9)', async (__, answer) => {
    answering(answer, 'claim');
    const claim = claimOf('lease/a', { patience });
    // What is promised and never comes ends with the connection.
    setTimeout(fake.dropConnections, 400).unref();
    const outcome = await store.acquire(claim).then(
      ({ granted }) => granted,
      () => false,
    );
    expect(outcome).toBe(false);
  });

  it.each([...NONSENSE, ...BROKEN])(
    'neither renews nor takes away: %s (rule 6)',
    async (__, answer) => {
      const holds = [await take(store, 'lease/a'), await take(store, 'lease/b')];
      answering(answer, 'renew');
      setTimeout(fake.dropConnections, 100).unref();
      const outcomes = await store.renew(holds).catch(() => []);
      expect(outcomes).not.toContain('renewed');
      // A session that cannot be told from another one has lost its locks; a row stays what it was.
      if (Store === PostgresLeaseStore) expect(outcomes).not.toContain('gone');
    },
  );

  it.each(NONSENSE)('has no clock to make a deadline from: %s (rule 2)', async (__, answer) => {
    answering(answer, 'time');
    await expect(store.acquire(claimOf('lease/a', { patience }))).rejects.toThrow();
    expect(fake.statements.join()).not.toContain('WITH asked');
  });

  it('that shows the same page for ever is not read for ever', async () => {
    const row = { key: 'lease/a', lock: '1', fence: FENCE, owner: 'o', instance: 'i', since: NOW };
    answering(rows([{ ...row, until: LATER, holders: '[]', now: NOW }]), 'look');
    const read = async (): Promise<void> => {
      for await (const record of store.list()) expect(record.key).toBe('lease/a');
    };
    await expect(read()).rejects.toThrow(BAD_POSTGRES_ANSWER('list'));
  });

  it('gives no lease, and is told from one that is merely busy (rule 9)', async () => {
    answering(rows([{ ...GRANT, fence: 'x' }]), 'claim');
    const options = { store, namespace: 'lease', instance: 'test', ttl: 1_000, wait: 0 };
    const engine = new LeaseEngine(options);
    await expect(engine.tryAcquire('a')).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
      cause: { message: BAD_POSTGRES_ANSWER('acquire') },
    });
    await engine.close(0, 0);
  });

  it('may stop in the middle of an answer', async () => {
    answering(rows([GRANT]).subarray(0, 200), 'claim');
    const refused = expect(store.acquire(claimOf('lease/a'))).rejects.toThrow();
    await until(() => fake.statements.some((sql) => sql.includes('WITH asked')));
    fake.dropConnections();
    await refused;
  });
});

describe('A server that lies of when a key is free, to PostgresLeaseStore', () => {
  it.each([null, '', 'soon', '17', 'NaN'])('is not asked again and again: %p', async (freeAt) => {
    const fake = await startFakePostgres((sql) =>
      rows([
        sql.includes('verdict')
          ? { ...GRANT, verdict: 'held', fence: null, free_at: freeAt }
          : { now: NOW },
      ]),
    );
    const store = new PostgresLeaseStore(fake.url);
    await expect(store.acquire(claimOf('lease/a'))).rejects.toThrow(BAD_POSTGRES_ANSWER('now'));
    await store.close();
    await fake.close();
  });
});
