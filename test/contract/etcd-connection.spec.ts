import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  BAD_ETCD_CREDENTIALS,
  BAD_ETCD_ENDPOINT,
  BAD_ETCD_OPTIONS,
  BAD_ETCD_PREFIX,
  BAD_ETCD_TLS,
  ETCD_BAD_ANSWER,
  ETCD_CLOSED,
  ETCD_NOT_LET_IN,
  ETCD_STRANGE_VALUE,
  ETCD_TLS_WITHOUT_HTTPS,
} from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import { EtcdNames } from '../../lib/stores/etcd/etcd-names.js';
import type { EtcdLeaseStoreOptions } from '../../lib/stores/etcd/etcd-options.js';
import { makeCertificates, type Certificates } from '../support/certificates.js';
import { claimOf, take } from '../support/claims.js';
import { startEtcdProxy } from '../support/etcd-proxy.js';
import { startEtcd, type EtcdMember } from '../support/etcd-server.js';
import { startRedis } from '../support/redis-server.js';
import { realProcess } from '../support/real-process.js';
import { until } from '../support/until.js';

const stores: EtcdLeaseStore[] = [];
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
});

function storeOf(options: EtcdLeaseStoreOptions): EtcdLeaseStore {
  const store = new EtcdLeaseStore(options);
  stores.push(store);
  return store;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const everything = (error: unknown): string => inspect(error, { depth: 10, showHidden: true });

describe('An etcd store that is given nonsense', () => {
  it.each([[undefined], [null], [42], ['http://127.0.0.1:2379'], [[]]])(
    'says what it needs: %p',
    (nonsense) => {
      const construct = (): unknown => new EtcdLeaseStore(nonsense as never);
      expect(construct).toThrow(TypeError);
      expect(construct).toThrow(BAD_ETCD_OPTIONS(nonsense));
    },
  );

  it.each([
    [undefined],
    [''],
    [[]],
    [42],
    ['127.0.0.1:2379'],
    ['localhost'],
    ['redis://127.0.0.1'],
    ['http://user:hunter2@127.0.0.1:2379'],
    ['http://127.0.0.1:2379/?password=hunter2'],
    ['http://127.0.0.1:99999'],
    [['http://127.0.0.1:2379', undefined]],
  ])('says what an endpoint is, and repeats no password: %p (rule 15)', (endpoints) => {
    const construct = (): unknown => new EtcdLeaseStore({ endpoints: endpoints as string });
    expect(construct).toThrow(TypeError);
    expect(construct).toThrow(BAD_ETCD_ENDPOINT());
    expect(BAD_ETCD_ENDPOINT()).not.toContain('hunter2');
  });

  const endpoints = 'http://127.0.0.1:1';
  const secure = 'https://127.0.0.1:1';
  it.each<[string, object, string]>([
    ['a user without a password', { endpoints, username: 'a' }, BAD_ETCD_CREDENTIALS()],
    ['a password without a user', { endpoints, password: 'a' }, BAD_ETCD_CREDENTIALS()],
    ['no user', { endpoints, username: '', password: 'a' }, BAD_ETCD_CREDENTIALS()],
    [
      'a password of a strange type',
      { endpoints, username: 'a', password: 1 },
      BAD_ETCD_CREDENTIALS(),
    ],
    ['a prefix with a tab', { endpoints, prefix: 'a\tb' }, BAD_ETCD_PREFIX()],
    ['a prefix of a strange type', { endpoints, prefix: 1 }, BAD_ETCD_PREFIX()],
    ['TLS without https', { endpoints, tls: { ca: 'x' } }, ETCD_TLS_WITHOUT_HTTPS()],
    [
      'TLS for some',
      { endpoints: [secure, endpoints], tls: { ca: 'x' } },
      ETCD_TLS_WITHOUT_HTTPS(),
    ],
    ['a strange tls', { endpoints: secure, tls: 'x' }, BAD_ETCD_TLS('tls')],
    ['a strange ca', { endpoints: secure, tls: { ca: 1 } }, BAD_ETCD_TLS('tls.ca')],
    [
      'a certificate without a key',
      { endpoints: secure, tls: { cert: 'x' } },
      BAD_ETCD_TLS('tls.key'),
    ],
    [
      'a key without a certificate',
      { endpoints: secure, tls: { key: 'x' } },
      BAD_ETCD_TLS('tls.cert'),
    ],
  ])('names what is wrong: %s', (_, options, message) => {
    const construct = (): unknown => new EtcdLeaseStore(options as EtcdLeaseStoreOptions);
    expect(construct).toThrow(TypeError);
    expect(construct).toThrow(message);
  });
});

describe('An etcd store', () => {
  let server: EtcdMember;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server.stop());

  it('puts everything under its prefix, without owner tokens (rule 15)', async () => {
    const store = storeOf({ endpoints: `${server.url}/`, prefix: 'shop/' });
    const held = await take(store, 'lease/a', { permits: 2 });
    const kept = await take(store, 'lease/b', { once: 'tick' });
    await store.release(kept, { keepFor: 5_000, done: { once: 'tick', remember: 5_000 } });
    const all = await server.post('v3/kv/range', { key: 'AA==', range_end: 'AA==' });
    const names = (all['kvs'] as { key: string }[]).map(({ key }) =>
      Buffer.from(key, 'base64').toString(),
    );
    expect(names).toEqual([
      'shop/done/lease/b\ttick',
      expect.stringMatching(/^shop\/held\/lease\/a\t[0-9a-f]{32}$/),
      expect.stringMatching(/^shop\/held\/lease\/b\t[0-9a-f]{32}-kept$/),
    ]);
    expect(await store.release(held, {})).toBe(true);
  });

  it('leaves no name and no etcd lease behind when all is over', async () => {
    const store = storeOf({ endpoints: server.url });
    const held = await take(store, 'lease/over', { ttl: 60_000 });
    await store.acquire(claimOf(held.key));
    await store.renew([{ ...held, ttl: 90_000 }]);
    const again = await store.acquire({ ...held, ttl: 120_000 });
    expect(again).toEqual({ granted: true, fence: held.fence });
    expect(await store.release(held, {})).toBe(true);
    const ids = async (): Promise<string[]> => {
      const { leases = [] } = await server.post('v3/lease/leases', {});
      return (leases as { ID: string }[]).map(({ ID }) => ID);
    };
    const ttls = async (): Promise<number[]> =>
      Promise.all(
        (await ids()).map(async (ID) =>
          Number((await server.post('v3/lease/timetolive', { ID }))['grantedTTL']),
        ),
      );
    // Those of other tests are shorter.
    await until(async () => (await ttls()).every((seconds) => seconds < 60));
  });

  it('lets a thread renew what it granted', async () => {
    const store = storeOf({ endpoints: [server.url] });
    const held = await take(store, 'lease/thread');
    const { args, export: name } = store.thread();
    expect(name).toBe('EtcdLeaseStore');
    const other = storeOf(structuredClone(args[0]) as EtcdLeaseStoreOptions);
    expect(await other.renew([held])).toEqual(['renewed']);
  });

  it('renews hundreds at once', async () => {
    const store = storeOf({ endpoints: server.url });
    const held = await Promise.all(
      Array.from({ length: 230 }, (_, i) =>
        take(store, `lease/many-${i}`, { ttl: 30_000, patience: 10_000 }),
      ),
    );
    await store.release(held[150]!, {});
    const outcomes = await store.renew(held);
    expect(
      outcomes.map((outcome, i) => (outcome === 'renewed' ? -1 : i)).filter((i) => i >= 0),
    ).toEqual([150]);
    expect(outcomes[150]).toBe('gone');
    await Promise.all(held.map((one) => store.release(one, {})));
  });

  it('asks for hundreds at the start without a warning', async () => {
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown): void => void warnings.push(warning);
    realProcess.on('warning', onWarning);
    const store = storeOf({ endpoints: server.url });
    const held = await Promise.all(
      Array.from({ length: 200 }, (_, i) => take(store, `lease/start-${i}`, { patience: 10_000 })),
    );
    await Promise.all(held.map((one) => store.release(one, {})));
    realProcess.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('lists more than fits on a page, each key once with all its holders', async () => {
    const store = storeOf({ endpoints: server.url, prefix: 'pages/' });
    const put = async (name: string): Promise<unknown> => {
      const value = JSON.stringify({
        permits: 700,
        seconds: 60,
        instance: 'x',
        owner: 'x',
        since: 1,
      });
      const { ID } = (await lease) as { ID: string };
      return server.post('v3/kv/put', { key: base64(name), value: base64(value), lease: ID });
    };
    const lease = server.post('v3/lease/grant', { TTL: '60' });
    for (let i = 0; i < 600; i += 50) {
      const some = Array.from({ length: 50 }, (_, j) => `${i + j}`.padStart(32, '0'));
      await Promise.all(some.map((hash) => put(`pages/held/lease/shared\t${hash}`)));
    }
    await put(`pages/held/lease/zz\t${'0'.repeat(32)}`);
    const found = new Map<string, number>();
    for await (const { key, holders } of store.list()) found.set(key, holders.length);
    expect([...found]).toEqual([
      ['lease/shared', 600],
      ['lease/zz', 1],
    ]);
  });

  it.each([
    ['a text', 'x'],
    ['JSON of another shape', '{"permits":"1"}'],
    ['null', 'null'],
    ['a lease without an etcd lease', '{"permits":1,"seconds":5}'],
  ])('leaves alone what is no lease: %s (rule 9)', async (_, value) => {
    const store = storeOf({ endpoints: server.url });
    const key = base64('nestjs-lease/held/lease/foreign\tx');
    await server.post('v3/kv/put', { key, value: base64(value) });
    await expect(store.acquire(claimOf('lease/foreign'))).rejects.toThrow(
      ETCD_STRANGE_VALUE('lease/foreign'),
    );
    await take(store, `lease/beside-${value.length}`, { ttl: 1_000 });
    const { kvs } = await server.post('v3/kv/range', { key });
    expect(kvs).toHaveLength(1);
    await server.post('v3/kv/deleterange', { key });
  });

  it('renews what is a lease beside what is none any more (rule 6)', async () => {
    const store = storeOf({ endpoints: server.url, prefix: 'spoilt/' });
    const held = await Promise.all(['a', 'b', 'c'].map((name) => take(store, `lease/${name}`)));
    const key = new EtcdNames('spoilt/').holder(held[1]!.key, held[1]!.token);
    await server.post('v3/kv/put', { key, value: base64('x') });
    expect(await store.renew(held)).toEqual(['renewed', 'unknown', 'renewed']);
  });

  it('works no more after it is closed, leaves no connection, and opens again', async () => {
    const proxy = await startEtcdProxy(server.port);
    const store = storeOf({ endpoints: proxy.url });
    const held = await take(store, 'lease/closed');
    await store.watch(held.key, () => {});
    await store.close();
    await until(() => proxy.connections === 0);
    await expect(store.acquire(claimOf('lease/closed'))).rejects.toThrow(ETCD_CLOSED());
    await expect(store.renew([held])).rejects.toThrow(ETCD_CLOSED());
    await expect(store.release(held, {})).rejects.toThrow(ETCD_CLOSED());
    await expect(store.watch(held.key, () => {})).rejects.toThrow(ETCD_CLOSED());
    await store.open();
    expect(await store.release(held, {})).toBe(true);
    await store.close();
    await proxy.close();
  });

  it('is closed while requests are under way', async () => {
    const proxy = await startEtcdProxy(server.port);
    proxy.script = () => 'hold';
    const store = storeOf({ endpoints: proxy.url });
    const asked = [
      store.acquire(claimOf('lease/under-way', { patience: 60_000 })),
      store.watch('lease/under-way', () => {}),
    ].map(errorOf);
    await until(() => proxy.held === 2);
    await store.close();
    for (const error of await Promise.all(asked)) expect(error).toBeInstanceOf(Error);
    await proxy.close();
  });

  it('is closed while more requests are under way than it has connections for', async () => {
    const proxy = await startEtcdProxy(server.port);
    proxy.script = () => 'hold';
    const store = storeOf({ endpoints: proxy.url });
    const asked = Array.from({ length: 100 }, (_, i) =>
      errorOf(store.acquire(claimOf(`lease/crowd-${i}`, { patience: 60_000 }))),
    );
    await until(() => proxy.held > 0 && proxy.held === proxy.connections);
    const sent = proxy.requests.length;
    proxy.script = () => undefined;
    await store.close();
    for (const error of await Promise.all(asked)) {
      expect(error).toMatchObject({ message: ETCD_CLOSED() });
    }
    await until(() => proxy.connections === 0);
    expect(proxy.requests).toHaveLength(sent);
    await proxy.close();
  });

  it('does not wait longer for an answer than it was to', async () => {
    const proxy = await startEtcdProxy(server.port);
    proxy.script = () => 'hold';
    const store = storeOf({ endpoints: proxy.url });
    await expect(store.acquire(claimOf('lease/slow', { patience: 50 }))).rejects.toThrow('50 ms');
    await proxy.close();
  });

  it('names what is no etcd: a page, another server, nobody', async () => {
    const page = await startEtcdProxy();
    page.script = () => ({ status: 404, text: '<html>Not Found</html>' });
    const redis = await startRedis();
    const { port } = page;
    await expect(storeOf({ endpoints: page.url }).open()).rejects.toThrow(
      ETCD_BAD_ANSWER(`127.0.0.1:${port}`, 404),
    );
    for (const endpoints of [`http://127.0.0.1:${redis.port}`, 'http://127.0.0.1:1']) {
      await expect(storeOf({ endpoints }).open()).rejects.toThrow('cannot be reached');
    }
    await page.close();
    await redis.stop();
  });

  it('that has one right endpoint among wrong ones uses it', async () => {
    const page = await startEtcdProxy();
    page.script = () => ({ status: 502, text: 'Bad Gateway' });
    const store = storeOf({ endpoints: ['http://127.0.0.1:1', page.url, server.url] });
    const held = await take(store, 'lease/failover');
    expect(await store.release(held, {})).toBe(true);
    // It is not asked again every time.
    expect(page.requests).toHaveLength(1);
    await page.close();
  });
});

describe('An etcd with users', () => {
  let server: EtcdMember;
  let root: string;
  const admin = async (path: string, body: object): Promise<unknown> => {
    const answer = await server.post(`v3/auth/${path}`, body, root);
    if ('error' in answer) throw new Error(`${path}: ${String(answer['error'])}`);
    return answer;
  };
  const signIn = async (): Promise<void> => {
    root = (await server.post('v3/auth/authenticate', { name: 'root', password: 'r' }))[
      'token'
    ] as string;
  };
  beforeAll(async () => {
    server = await startEtcd();
    await admin('user/add', { name: 'root', password: 'r' });
    await admin('role/add', { name: 'root' });
    await admin('user/grant', { user: 'root', role: 'root' });
    await admin('role/add', { name: 'leases' });
    const [key, range_end] = [base64('nestjs-lease/'), base64('nestjs-lease0')];
    await admin('role/grant', { name: 'leases', perm: { permType: 'READWRITE', key, range_end } });
    await admin('user/add', { name: 'app', password: 'hunter2' });
    await admin('user/grant', { user: 'app', role: 'leases' });
    await admin('enable', {});
    await signIn();
  });
  afterAll(() => server.stop());

  const app = { username: 'app', password: 'hunter2' };

  it('is used with a role for the prefix alone: everything', async () => {
    const store = storeOf({ endpoints: server.url, ...app });
    await store.open();
    const held = await take(store, 'lease/a', { once: 'tick' });
    let told = 0;
    const stop = await store.watch(held.key, () => told++);
    expect(await store.acquire(claimOf('lease/a'))).toMatchObject({ reason: 'held' });
    expect(await store.renew([held])).toEqual(['renewed']);
    expect(await store.renew([{ ...held, ttl: 30_000 }])).toEqual(['renewed']);
    expect((await store.inspect(held.key))?.holders).toHaveLength(1);
    expect(await store.release(held, { done: { once: 'tick', remember: 1_000 } })).toBe(true);
    await until(() => told > 0);
    await stop();
    expect(await store.acquire(claimOf('lease/a', { once: 'tick' }))).toMatchObject({
      reason: 'done',
    });
    const keys: string[] = [];
    for await (const { key } of store.list()) keys.push(key);
    expect(keys).toEqual([]);
  });

  it('is signed in to again when it has forgotten: a restart', async () => {
    const store = storeOf({ endpoints: server.url, ...app });
    const held = await take(store, 'lease/restart', { ttl: 30_000 });
    await server.kill();
    await server.start();
    await until(() =>
      store.renew([held]).then(
        ([outcome]) => outcome === 'renewed',
        () => false,
      ),
    );
    await signIn();
    expect(await store.release(held, {})).toBe(true);
  });

  it('is signed in to again when a role was changed', async () => {
    const store = storeOf({ endpoints: server.url, ...app });
    const held = await take(store, 'lease/role');
    await admin('role/add', { name: `other-${Date.now()}` });
    expect(await store.renew([held])).toEqual(['renewed']);
    expect(await store.release(held, {})).toBe(true);
  });

  it('is signed in to by each request in its own time', async () => {
    const proxy = await startEtcdProxy(server.port);
    const store = storeOf({ endpoints: proxy.url, ...app });
    let asked = 0;
    proxy.script = ({ path }) =>
      path === 'v3/auth/authenticate' && asked++ === 0 ? 'hold' : undefined;
    const hasty = errorOf(store.acquire(claimOf('lease/hasty', { patience: 100 })));
    const { granted } = await store.acquire(claimOf('lease/patient', { patience: 5_000 }));
    expect(granted).toBe(true);
    expect(await hasty).toBeInstanceOf(Error);
    await store.close();
    await proxy.close();
  });

  it.each([
    ['password', { username: 'app', password: 'hunter3' }],
    ['user', { username: 'nobody', password: 'hunter3' }],
  ])(
    'does not let in a wrong %s, and tells it without the password (rules 9 and 15)',
    async (_, user) => {
      const store = storeOf({ endpoints: server.url, ...user });
      const engine = new LeaseEngine({
        store,
        namespace: 'lease',
        instance: 'test',
        ttl: 3_000,
        wait: 0,
      });
      const errors = await Promise.all([
        errorOf(store.open()),
        errorOf(store.acquire(claimOf('lease/a'))),
        errorOf(store.watch('lease/a', () => {})),
        errorOf(engine.tryAcquire('a')),
      ]);
      expect(errors[0]).toMatchObject({ message: ETCD_NOT_LET_IN(user.username) });
      expect(errors[3]).toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
      for (const error of errors) expect(everything(error)).not.toContain('hunter');
      await engine.close(0, 0);
    },
  );

  it('refuses who has no user, and who may not use the prefix', async () => {
    await expect(storeOf({ endpoints: server.url }).open()).rejects.toThrow('user name is empty');
    const elsewhere = storeOf({ endpoints: server.url, ...app, prefix: 'other/' });
    await expect(elsewhere.open()).rejects.toThrow('permission denied');
  });

  it('lets in after the password was set right (rule 9)', async () => {
    await admin('user/add', { name: 'late', password: 'other' });
    await admin('user/grant', { user: 'late', role: 'leases' });
    const store = storeOf({ endpoints: server.url, username: 'late', password: 'hunter2' });
    await expect(store.open()).rejects.toThrow(ETCD_NOT_LET_IN('late'));
    await admin('user/changepw', { name: 'late', password: 'hunter2' });
    await take(store, 'lease/late');
  });

  it('need not have them: where nobody has to sign in, nobody does', async () => {
    const open = await startEtcd();
    const store = storeOf({ endpoints: open.url, ...app });
    await take(store, 'lease/open');
    await store.close();
    await open.stop();
  });
});

describe('An etcd behind TLS that asks for a certificate', () => {
  let pki: Certificates;
  let stranger: Certificates;
  let server: EtcdMember;
  beforeAll(async () => {
    pki = makeCertificates();
    stranger = makeCertificates();
    const args = [
      `--cert-file=${pki.file('cert')}`,
      `--key-file=${pki.file('key')}`,
      `--trusted-ca-file=${pki.file('ca')}`,
      '--client-cert-auth',
    ];
    server = await startEtcd({ scheme: 'https', args });
  });
  afterAll(async () => {
    await server.stop();
    pki.remove();
    stranger.remove();
  });

  it.each(['text', 'Buffer'])('is used with ca, cert and key as %s: also to watch', async (as) => {
    const pem = (text: string): string | Buffer => (as === 'text' ? text : Buffer.from(text));
    const tls = { ca: pem(pki.ca), cert: pem(pki.cert), key: pem(pki.key) };
    const store = storeOf({ endpoints: server.url, tls });
    await store.open();
    const held = await take(store, `lease/${as}`);
    let told = 0;
    await store.watch(held.key, () => told++);
    const inThread = storeOf(structuredClone(store.thread().args[0]) as EtcdLeaseStoreOptions);
    expect(await inThread.renew([held])).toEqual(['renewed']);
    expect(await store.release(held, {})).toBe(true);
    await until(() => told > 0);
  });

  it('is not trusted when its certificate is not', async () => {
    const { cert, key } = pki;
    for (const tls of [
      { cert, key },
      { ca: stranger.ca, cert, key },
    ]) {
      const store = storeOf({ endpoints: server.url, tls });
      await expect(store.open()).rejects.toThrow(/UNABLE_TO_|SELF_SIGNED|CERT/);
      await expect(store.acquire(claimOf('lease/a'))).rejects.toThrow(
        /UNABLE_TO_|SELF_SIGNED|CERT/,
      );
    }
  });

  it('does not trust whose certificate it does not know', async () => {
    const { cert, key } = stranger;
    for (const tls of [{ ca: pki.ca }, { ca: pki.ca, cert, key }]) {
      const error = await errorOf(storeOf({ endpoints: server.url, tls }).open());
      expect(error).toMatchObject({ message: expect.stringContaining('cannot be reached') });
      expect(everything(error)).not.toContain('PRIVATE KEY');
    }
  });
});
