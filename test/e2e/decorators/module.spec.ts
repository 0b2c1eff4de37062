import { Injectable, Module } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import {
  BAD_DURATION,
  BAD_DURATION_RANGE,
  BAD_KEY,
  BAD_NAMESPACE,
  BAD_OPTION,
  BAD_OPTIONS,
  MEMORY_STORE,
  UNKNOWN_OPTION,
} from '../../../lib/lease.messages.js';
import {
  ElectionService,
  LeaseModule,
  LeaseService,
  MemoryLeaseStore,
  WithLease,
  type LeaseEvent,
  type LeaseModuleOptions,
} from 'nestjs-lease';
import { CapturingLogger, startApp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

@Injectable()
class Job {
  @WithLease()
  async run(): Promise<string> {
    return 'ran';
  }
}

describe('LeaseModule.forRoot()', () => {
  it('needs no options', async () => {
    const app = await startApp({
      imports: [LeaseModule.forRoot()],
      providers: [Job],
      lease: false,
    });
    expect(await app.get(Job).run()).toBe('ran');
  });

  it('is global: a feature module need not import it', async () => {
    @Module({ providers: [Job] })
    class Feature {}
    const app = await startApp({ imports: [Feature] });
    expect(await app.get(Job, { strict: false }).run()).toBe('ran');
  });

  it('is there for who imports it with isGlobal: false', async () => {
    const leases = LeaseModule.forRoot({ isGlobal: false });
    @Module({ imports: [leases], providers: [Job] })
    class Feature {}
    const app = await startApp({ imports: [Feature], lease: false });
    expect(await app.get(Job, { strict: false }).run()).toBe('ran');
  });

  it('says once that the embedded store protects one process only', async () => {
    const logger = new CapturingLogger();
    await startApp({ logger, providers: [Job] });
    expect(logger.of('warn')).toEqual([MEMORY_STORE('memory')]);
  });

  it('uses the store it is given', async () => {
    const store = new MemoryLeaseStore();
    const app = await startApp({ lease: { store, namespace: 'shop', instance: 'me' } });
    await using lease = await app.get(LeaseService).acquire('key');
    expect(await store.inspect('shop/key')).toMatchObject({
      holders: [{ instance: 'me', fence: lease.fence }],
    });
  });

  it('gives leases its ttl and wait', async () => {
    const app = await startApp({ lease: { ttl: '3s', wait: '5s' } });
    const leases = app.get(LeaseService);
    const lease = await leases.acquire('key');
    expect(lease.ttl).toBe(3_000);
    const waiting = leases.acquire('key');
    await lease.release();
    await (await waiting).release();
  });
});

describe('LeaseModule.forRootAsync()', () => {
  const SETTINGS = { namespace: 'from-settings' };

  @Module({ providers: [{ provide: 'SETTINGS', useValue: SETTINGS }], exports: ['SETTINGS'] })
  class SettingsModule {}

  @Injectable()
  class Factory {
    create(): LeaseModuleOptions {
      return { ttl: '7s' };
    }
  }

  it('takes options from a factory with what it injects', async () => {
    const store = new MemoryLeaseStore();
    const lease = LeaseModule.forRootAsync({
      imports: [SettingsModule],
      inject: ['SETTINGS'],
      useFactory: async (settings: { namespace: string }) => ({ ...settings, store }),
    });
    const app = await startApp({ imports: [lease], providers: [Job], lease: false });
    await using _ = await app.get(LeaseService).acquire('key');
    expect(await store.inspect('from-settings/key')).not.toBeNull();
    expect(await app.get(Job).run()).toBe('ran');
  });

  it('takes options from a class', async () => {
    const lease = LeaseModule.forRootAsync({ useClass: Factory });
    const app = await startApp({ imports: [lease], lease: false });
    await using held = await app.get(LeaseService).acquire('key');
    expect(held.ttl).toBe(7_000);
  });

  it('is local with isGlobal: false', async () => {
    @Module({
      imports: [LeaseModule.forRootAsync({ isGlobal: false, useFactory: () => ({}) })],
      providers: [Job],
    })
    class Feature {}
    const app = await startApp({ imports: [Feature], lease: false });
    expect(await app.get(Job, { strict: false }).run()).toBe('ran');

    @Module({ providers: [Job] })
    class Without {}
    const imports = [
      Without,
      LeaseModule.forRootAsync({ isGlobal: false, useFactory: () => ({}) }),
    ];
    await expect(startApp({ imports, lease: false })).rejects.toThrow('LeaseModule.forRoot()');
  });

  it('stops the start when the factory gives nonsense', async () => {
    const lease = LeaseModule.forRootAsync({ useFactory: () => 'redis' as never });
    await expect(startApp({ imports: [lease], lease: false })).rejects.toThrow(
      BAD_OPTIONS('redis'),
    );
  });
});

describe('a bad option of the module stops the start and is named', () => {
  const STORE = 'a LeaseStore, such as new RedisLeaseStore(url)';
  const TTL_MAX = 86_400_000;
  const KNOWN = [
    'store',
    'namespace',
    'instance',
    'ttl',
    'wait',
    'shutdownGrace',
    'election',
    'renewInThread',
    'fencing',
    'isGlobal',
  ];

  it.each<[string, object, string]>([
    [
      'store: a URL',
      { store: 'redis://localhost' },
      BAD_OPTION('store', 'redis://localhost', STORE),
    ],
    ['store: null', { store: null }, BAD_OPTION('store', null, STORE)],
    ['store: incomplete', { store: { limits: {} } }, BAD_OPTION('store', {}, STORE)],
    ['namespace: empty', { namespace: '' }, BAD_NAMESPACE('')],
    ['namespace: a slash', { namespace: 'a/b' }, BAD_NAMESPACE('a/b')],
    [
      'instance: empty',
      { instance: '' },
      BAD_OPTION('instance', '', 'a string of 1 to 200 characters'),
    ],
    ['ttl: no duration', { ttl: 'soon' }, BAD_DURATION('ttl', 'soon')],
    ['ttl: nothing', { ttl: 0 }, BAD_DURATION_RANGE('ttl', 0, 1, TTL_MAX)],
    ['ttl: more than the store can', { ttl: '2d' }, BAD_DURATION_RANGE('ttl', '2d', 1, TTL_MAX)],
    ['wait: negative', { wait: -1 }, BAD_DURATION_RANGE('wait', -1, 0, Infinity)],
    ['shutdownGrace', { shutdownGrace: {} }, BAD_DURATION('shutdownGrace', {})],
    ['election: no object', { election: 'on' }, BAD_OPTION('election', 'on', 'an object')],
    ['election.group', { election: { group: '' } }, BAD_KEY('group', '', 'is empty')],
    ['election.ttl', { election: { ttl: 'x' } }, BAD_DURATION('election.ttl', 'x')],
    [
      'election.campaignWhen',
      { election: { campaignWhen: true } },
      BAD_OPTION('election.campaignWhen', true, 'a function'),
    ],
    [
      'election: unknown',
      { election: { name: 'x' } },
      UNKNOWN_OPTION('name', ['group', 'ttl', 'campaignWhen']),
    ],
    ['unknown', { redis: 'x' }, UNKNOWN_OPTION('redis', KNOWN)],
  ])('%s', async (_, lease, message) => {
    await expect(startApp({ lease })).rejects.toThrow(message);
  });
});

describe('LeaseService', () => {
  async function start() {
    const app = await startApp({ lease: { instance: 'me' } });
    return { app, leases: app.get(LeaseService) };
  }

  it('current() is the innermost lease of the running code, and nothing outside of it', async () => {
    const { leases } = await start();
    const seen = await leases.run('outer', async () => {
      const outer = leases.current()?.key;
      const inner = await leases.run('inner', async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return leases.current()?.key;
      });
      return [outer, inner, leases.current()?.key];
    });
    expect(seen).toEqual(['outer', 'inner', 'outer']);
    expect(leases.current()).toBeUndefined();
  });

  it('held() has the leases that are held now', async () => {
    const { leases } = await start();
    const a = await leases.acquire('a');
    const b = await leases.acquire('b');
    expect(leases.held()).toEqual([a, b]);
    await a.release();
    expect(leases.held()).toEqual([b]);
    await b.release();
  });

  it('inspect() says who holds a key without the token, and null when it is free (rule 15)', async () => {
    const { leases } = await start();
    expect(await leases.inspect('key')).toBeNull();
    await using lease = await leases.acquire('key');
    expect(await leases.inspect('key')).toStrictEqual({
      key: 'key',
      freeInMs: expect.any(Number),
      holders: [
        {
          instance: 'me',
          fence: lease.fence,
          owner: expect.stringMatching(/^[\da-f]{8}$/),
          since: expect.any(Date),
          expiresInMs: expect.any(Number),
        },
      ],
    });
  });

  it('events$ tells what happens to a lease, in order', async () => {
    const { leases } = await start();
    const events: LeaseEvent[] = [];
    leases.events$.subscribe((event) => events.push(event));
    const lease = await leases.acquire('key');
    await leases.tryAcquire('key');
    await lease.renew();
    await lease.release();
    const { fence } = lease;
    expect(events).toMatchObject([
      { type: 'acquired', key: 'key', fence, instance: 'me', at: expect.any(Date) },
      { type: 'refused', key: 'key', reason: 'held' },
      { type: 'renewed', key: 'key', fence },
      { type: 'released', key: 'key', fence, outcome: 'released' },
    ]);
  });

  it('lost$ tells of a loss and not of a release', async () => {
    const { leases } = await start();
    const losses: LeaseEvent[] = [];
    leases.lost$.subscribe((event) => losses.push(event));
    await (await leases.acquire('released')).release();
    await leases.acquire('lost', { maxHold: 200 });
    await until(() => losses.length > 0);
    expect(losses).toMatchObject([{ type: 'lost', key: 'lost', reason: 'max-hold' }]);
  });

  it('and ElectionService can be injected anywhere', async () => {
    @Injectable()
    class User {
      constructor(
        readonly leases: LeaseService,
        readonly elections: ElectionService,
      ) {}
    }
    const app = await startApp({ providers: [User] });
    expect(app.get(User).leases).toBe(app.get(LeaseService));
    expect(app.get(User).elections).toBe(app.get(ElectionService));
  });
});
