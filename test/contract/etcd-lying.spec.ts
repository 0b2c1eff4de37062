import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ETCD_BAD_ANSWER } from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startEtcdProxy, type EtcdProxy, type Verdict } from '../support/etcd-proxy.js';
import { startEtcd, type EtcdMember } from '../support/etcd-server.js';
import { until } from '../support/until.js';

const header = '"header":{"revision":"7","raft_term":"2"}';

/** Answers from which nothing follows. */
const NONSENSE: readonly [what: string, answer: { status?: number; text: string }][] = [
  ['nothing', { text: '' }],
  ['a page', { text: '<html><body>Welcome</body></html>' }],
  ['a page with an error', { status: 503, text: '<html>Service Unavailable</html>' }],
  ['half an answer', { text: `{${header},"succeeded":tr` }],
  ['null', { text: 'null' }],
  ['a number', { text: '1' }],
  ['a text', { text: '"granted"' }],
  ['an array', { text: '[]' }],
  ['an object', { text: '{}' }],
  ['a header alone', { text: `{${header}}` }],
  ['a header of nulls', { text: '{"header":{"revision":null,"raft_term":null}}' }],
  ['revision 0', { text: '{"header":{"revision":"0","raft_term":"2"},"succeeded":true}' }],
  ['a revision below 0', { text: '{"header":{"revision":"-7","raft_term":"2"}}' }],
  [
    'a revision beyond all bounds',
    { text: '{"header":{"revision":"9007199254740993","raft_term":"2"},"succeeded":true}' },
  ],
  ['a verdict that is a text', { text: `{${header},"succeeded":"true","responses":[{}]}` }],
  ['results that are no list', { text: `{${header},"succeeded":true,"responses":{}}` }],
  ['results that are nothing', { text: `{${header},"succeeded":true,"responses":[null]}` }],
  [
    'too many results',
    {
      text: `{${header},"succeeded":true,"responses":[{"response_put":{}},{"response_put":{}},{"response_put":{}}]}`,
    },
  ],
  ['an error without a code', { status: 500, text: '{"error":"no"}' }],
  ['an error of strange types', { status: 500, text: '{"error":{},"code":"x"}' }],
  ['bytes without an end', { text: 'x'.repeat(17 * 1_024 * 1_024) }],
];

describe('A server that answers nonsense', () => {
  let server: EtcdMember;
  let proxy: EtcdProxy;
  let store: EtcdLeaseStore;
  let keys = 0;
  let key: string;

  beforeAll(async () => {
    server = await startEtcd();
  });
  beforeEach(async () => {
    key = `lease/lying-${keys++}`;
    proxy = await startEtcdProxy(server.port);
    store = new EtcdLeaseStore({ endpoints: proxy.url });
  });
  afterEach(async () => {
    await store.close();
    await proxy.close();
  });
  afterAll(() => server.stop());

  /** Answers like this to what matches, as etcd does to the rest. */
  const lying = (verdict: Verdict, isMeant: (path: string, isWrite: boolean) => boolean): void => {
    proxy.script = ({ path, isWrite }) => (isMeant(path, isWrite) ? verdict : undefined);
  };
  const patience = 1_000;

  it.each(NONSENSE)('to a look grants nothing: %s', async (_, answer) => {
    lying(answer, (path, isWrite) => path === 'v3/kv/txn' && !isWrite);
    for (const permits of [1, 2]) {
      await expect(store.acquire(claimOf(key, { permits, patience }))).rejects.toThrow();
    }
    expect(proxy.requests.filter(({ isWrite }) => isWrite)).toEqual([]);
  });

  it.each(NONSENSE)('to a grant of an etcd lease grants nothing: %s', async (_, answer) => {
    lying(answer, (path) => path === 'v3/lease/grant');
    await expect(store.acquire(claimOf(key, { patience }))).rejects.toThrow();
    expect(await store.inspect(key)).toBeNull();
  });

  it.each([
    ['another lease', `{${header},"ID":"1","TTL":"10"}`],
    ['a shorter lease than was asked for', (id: string) => `{${header},"ID":"${id}","TTL":"9"}`],
    ['a lease without a time', (id: string) => `{${header},"ID":"${id}"}`],
  ])('to a grant of an etcd lease grants nothing: %s (rule 3)', async (_, text) => {
    proxy.script = ({ path, body }) => {
      if (path !== 'v3/lease/grant') return undefined;
      const { ID } = JSON.parse(body) as { ID: string };
      return { text: typeof text === 'string' ? text : text(ID) };
    };
    await expect(store.acquire(claimOf(key, { patience }))).rejects.toThrow();
    expect(await store.inspect(key)).toBeNull();
  });

  it.each(NONSENSE)('to a claim gives no lease: %s (rule 9)', async (_, answer) => {
    lying(answer, (__, isWrite) => isWrite);
    const options = { store, namespace: 'lease', instance: 'test', ttl: 3_000, wait: 0 };
    const engine = new LeaseEngine(options);
    await expect(engine.tryAcquire(key)).rejects.toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
    await engine.close(0, 0);
  });

  it.each(NONSENSE)('neither renews nor takes away: %s (rule 6)', async (_, answer) => {
    const holds = [await take(store, `${key}a`), await take(store, `${key}b`)];
    for (const path of ['v3/kv/txn', 'v3/lease/keepalive']) {
      lying(answer, (asked) => asked === path);
      const outcomes = await store.renew(holds).catch(() => ['unknown', 'unknown']);
      expect(outcomes).toEqual(['unknown', 'unknown']);
    }
    proxy.script = () => undefined;
    expect(await store.renew(holds)).toEqual(['renewed', 'renewed']);
  });

  it.each([
    ['too few', (text: string) => text.split('\n')[0]!],
    ['too many', (text: string) => text + text],
    ['those of each other', (text: string) => text.split('\n').toReversed().join('\n')],
    ['an error', () => '{"error":{"grpc_code":14,"message":"etcdserver: no leader"}}\n{}'],
    ['a shorter time', (text: string) => text.replaceAll('"TTL":"10"', '"TTL":"9"')],
  ])('to keeping alive renews nothing: %s (rules 3 and 6)', async (_, edit) => {
    const holds = [await take(store, `${key}a`), await take(store, `${key}b`)];
    lying({ edit }, (path) => path === 'v3/lease/keepalive');
    const outcomes = await store.renew(holds).catch(() => ['unknown', 'unknown']);
    expect(outcomes).toEqual(['unknown', 'unknown']);
  });

  it.each(NONSENSE)('frees nothing: %s (rule 7)', async (_, answer) => {
    const held = await take(store, key);
    lying(answer, (__, isWrite) => isWrite);
    await expect(store.release(held, {})).rejects.toThrow();
    proxy.script = () => undefined;
    expect(await store.renew([held])).toEqual(['renewed']);
  });

  it.each(NONSENSE)(
    'of how long it is held does not change that it is: %s (rule 9)',
    async (_, answer) => {
      await take(store, key);
      lying(answer, (path) => path === 'v3/lease/timetolive');
      const refusal = await store.acquire(claimOf(key, { patience }));
      expect(refusal).toMatchObject({ granted: false, reason: 'held' });
    },
  );

  it.each(NONSENSE)('shows nothing: %s', async (_, answer) => {
    await take(store, key);
    lying(answer, (path) => path === 'v3/kv/txn');
    await expect(store.inspect(key)).rejects.toThrow();
    await expect(listed()).rejects.toThrow();
  });
  const listed = async (): Promise<void> => {
    for await (const record of store.list()) expect(record).toBeDefined();
  };

  it.each(NONSENSE)('does not watch: %s', async (_, answer) => {
    lying(answer, (path) => path === 'v3/watch');
    await expect(store.watch(key, () => {})).rejects.toThrow();
  });

  it('lets nobody in: what is no token is none, and what it says is not repeated (rule 15)', async () => {
    const own = new EtcdLeaseStore({ endpoints: proxy.url, username: 'u', password: 'hunter2' });
    for (const text of ['{}', '{"token":1}', '{"token":""}', '{"token":"a\\r\\nx: y"}', '<p>']) {
      lying({ text }, (path) => path === 'v3/auth/authenticate');
      await expect(own.open()).rejects.toThrow(ETCD_BAD_ANSWER(`127.0.0.1:${proxy.port}`, 200));
    }
    const text = '{"error":"no hunter2","message":"no hunter2","code":3}';
    lying({ status: 400, text }, (path) => path === 'v3/auth/authenticate');
    const error: unknown = await own.open().catch((reason: unknown) => reason);
    expect(String(error)).not.toContain('hunter2');
    await own.close();
  });

  it('may stop in the middle of an answer', async () => {
    proxy.script = () => 'hold';
    const refused = expect(store.acquire(claimOf(key))).rejects.toThrow();
    await until(() => proxy.held > 0);
    proxy.script = () => 'reset';
    proxy.dropConnections();
    await refused;
  });
});
