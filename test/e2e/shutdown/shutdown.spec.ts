import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { AddressInfo } from 'node:net';
import {
  Controller,
  Get,
  Injectable,
  Module,
  type INestApplication,
  type INestApplicationContext,
  type OnModuleInit,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Interval, Timeout } from '@nestjs/schedule';
import {
  CurrentLease,
  ElectionService,
  Lease,
  LeaderOnly,
  LeaseModule,
  LeaseService,
  LeaseUnavailableException,
  MemoryLeaseStore,
  WithLease,
  type LeaseModuleOptions,
  type LeaseStore,
} from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';
import {
  LEFT_TO_TTL,
  SHUTTING_DOWN,
  SKIPPED,
  SKIPPED_CLOSING,
  STORE_NOT_CLOSED,
  STORE_NOT_OPEN,
} from '../../../lib/lease.messages.js';
import { LeaseEngine } from '../../../lib/lease/lease-engine.js';
import { CapturingLogger, startApp } from '../../support/nest-app.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { until } from '../../support/until.js';

/** Work whose end is in the test's hands, and which tells what it saw. */
class Work {
  started = 0;
  reason: unknown;
  #end: () => void = () => {};

  async run(lease: Lease, { heeds = false } = {}): Promise<string> {
    const ended = new Promise<void>((resolve) => (this.#end = resolve));
    lease.signal.addEventListener('abort', () => {
      this.reason = lease.signal.reason;
      if (heeds) this.#end();
    });
    this.started++;
    await ended;
    return 'done';
  }

  end(): void {
    this.#end();
  }
}

const nothing = undefined as unknown as Lease;

@Injectable()
class Jobs {
  readonly work = new Work();
  ticks = 0;

  @WithLease('job')
  job(@CurrentLease() lease: Lease): Promise<string> {
    return this.work.run(lease);
  }

  @WithLease('obedient')
  obedient(@CurrentLease() lease: Lease): Promise<string> {
    return this.work.run(lease, { heeds: true });
  }

  @LeaderOnly('led')
  led(@CurrentLease() lease: Lease): Promise<string> {
    return this.work.run(lease);
  }

  @Interval(5)
  @WithLease('tick', { oncePerTick: false })
  async tick(): Promise<void> {
    this.ticks++;
  }
}

@Controller()
class JobsController {
  constructor(private readonly leases: LeaseService) {}

  readonly work = new Work();

  @Get('slow')
  @WithLease('slow')
  slow(@CurrentLease() lease: Lease): Promise<string> {
    return this.work.run(lease);
  }

  @Get('obedient')
  @WithLease('obedient')
  obedient(@CurrentLease() lease: Lease): Promise<string> {
    return this.work.run(lease, { heeds: true });
  }

  @Get('late')
  async late(): Promise<string> {
    await this.work.run({ signal: new AbortController().signal } as Lease);
    return this.leases.run('late', (lease) => this.work.run(lease, { heeds: true }));
  }

  @Get('waiting')
  @WithLease('taken', { wait: Infinity })
  async waiting(): Promise<string> {
    return 'got it';
  }
}

const apps = new Set<INestApplication>();
afterEach(async () => {
  await Promise.all([...apps].map((app) => app.close()));
  apps.clear();
});

/** Drains as Nest does by default: app.close() waits for the requests in flight. */
async function listen(
  lease: LeaseModuleOptions,
): Promise<{ app: INestApplication; url: string; controller: JobsController }> {
  @Module({ imports: [LeaseModule.forRoot(lease)], controllers: [JobsController] })
  class HttpModule {}
  const app = await NestFactory.create(HttpModule, { logger: false, abortOnError: false });
  apps.add(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return { app, url: `http://127.0.0.1:${port}`, controller: app.get(JobsController) };
}

/** Not kept alive: a connection that idles would be what the server waits for. */
const get = (url: string): Promise<Response> => fetch(url, { headers: { connection: 'close' } });

const holderOf = async (store: LeaseStore, key: string): Promise<string | undefined> =>
  (await store.inspect(`lease/${key}`))?.holders[0]?.instance;

const engineOf = (app: INestApplicationContext): LeaseEngine => app.get(LeaseEngine);

describe('work in flight', () => {
  it('may finish within the grace, its lease renewed beyond the ttl (rule 11)', async () => {
    const store = new MemoryLeaseStore();
    const app = await startApp({
      lease: { store, ttl: 400, shutdownGrace: '10s' },
      providers: [Jobs],
    });
    const { work } = app.get(Jobs);
    const result = app.get(Jobs).job(nothing);
    await until(() => work.started);
    let renewals = 0;
    app.get(LeaseService).events$.subscribe(({ type }) => (renewals += Number(type === 'renewed')));
    const closed = app.close();
    await until(() => renewals > 5);
    expect(await holderOf(store, 'job')).toBeDefined();

    work.end();
    await closed;
    expect(await result).toBe('done');
    expect(work.reason).toBeUndefined();
    expect(await holderOf(store, 'job')).toBeUndefined();
  });

  it('is aborted after the grace, with a reason, and its lease released when it stopped', async () => {
    const store = new MemoryLeaseStore();
    const app = await startApp({ lease: { store, shutdownGrace: 50 }, providers: [Jobs] });
    const { work } = app.get(Jobs);
    const result = app.get(Jobs).obedient(nothing);
    await until(() => work.started);
    await app.close();
    expect((work.reason as Error).message).toBe(SHUTTING_DOWN());
    expect(await result).toBe('done');
    expect(await holderOf(store, 'obedient')).toBeUndefined();
  });

  it.each([
    ['a lease', 'lease/job', 'job', (jobs: Jobs) => jobs.job(nothing)],
    ['a leadership', 'lease:election/led', 'election:led', (jobs: Jobs) => jobs.led(nothing)],
  ])(
    'that never stops keeps %s to its ttl: warned of, not released (rule 11)',
    async (_, qualified, key, start) => {
      const store = new MemoryLeaseStore();
      const logger = new CapturingLogger();
      const lease = { store, shutdownGrace: 30 };
      const app = await startApp({ lease, providers: [Jobs], logger });
      const { work } = app.get(Jobs);
      await until(() => app.get(ElectionService).leadership('led').isLeader);
      const result = start(app.get(Jobs));
      await until(() => work.started);
      await app.close();
      expect(logger.of('warn')).toContain(LEFT_TO_TTL([key]));
      expect((await store.inspect(qualified))?.holders).toHaveLength(1);
      expect(engineOf(app).agenda.size).toBe(0);
      work.end();
      await result;
    },
  );

  it('of a leader that was told to step down by hand does not hold up the end', async () => {
    const app = await startApp({ lease: { shutdownGrace: 30 }, providers: [Jobs] });
    const leadership = app.get(ElectionService).leadership('led');
    await until(() => leadership.isLeader);
    const { work } = app.get(Jobs);
    const result = app.get(Jobs).led(nothing);
    await until(() => work.started);
    void leadership.stepDown();
    await until(() => work.reason);
    await app.close();
    work.end();
    expect(await result).toBe('done');
  });
});

describe('scheduled work', () => {
  it('does not begin once the shutdown has, and a debug line says so', async () => {
    const logger = new CapturingLogger();
    const app = await startApp({
      lease: { shutdownGrace: '10s' },
      schedule: true,
      providers: [Jobs],
      logger,
    });
    const jobs = app.get(Jobs);
    await until(() => jobs.ticks > 2);
    const result = jobs.job(nothing);
    await until(() => jobs.work.started);
    const closed = app.close();
    const skipped = SKIPPED('Jobs.tick', SKIPPED_CLOSING());
    // The schedule itself goes on for as long as others may finish.
    await until(() => logger.of('debug').includes(skipped));
    const { ticks } = jobs;
    const lines = logger.lines.length;
    await until(() => logger.lines.length > lines + 5);
    expect(jobs.ticks).toBe(ticks);

    jobs.work.end();
    await closed;
    await result;
    expect(logger.of('error')).toEqual([]);
  });
});

describe('requests in flight', () => {
  it('are answered', async () => {
    const { app, url, controller } = await listen({ shutdownGrace: '10s' });
    const answer = get(`${url}/slow`);
    await until(() => controller.work.started);
    const closed = app.close();
    controller.work.end();
    const response = await answer;
    expect([response.status, await response.text()]).toEqual([200, 'done']);
    await closed;
  });

  it('that wait for their signal get it when the grace is over, and do not hold up the end', async () => {
    const { app, url, controller } = await listen({ shutdownGrace: 50 });
    const answer = get(`${url}/obedient`);
    await until(() => controller.work.started);
    await app.close();
    expect((controller.work.reason as Error).message).toBe(SHUTTING_DOWN());
    expect((await answer).status).toBe(200);
  });

  it('that wait for a lease are refused as unavailable when the grace is over', async () => {
    const store = new MemoryLeaseStore();
    const other = await startApp({ lease: { store } });
    await other.get(LeaseService).acquire('taken');
    const { app, url } = await listen({ store, shutdownGrace: 50 });
    const answer = get(`${url}/waiting`);
    await until(() => engineOf(app).awaited === 1);
    await app.close();
    const response = await answer;
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      503,
      'LEASE_STORE_UNAVAILABLE',
    ]);
  });

  it('that take a lease while the server drains are told to stop when the grace is over', async () => {
    const { app, url, controller } = await listen({ shutdownGrace: 200 });
    const answer = get(`${url}/late`);
    await until(() => controller.work.started === 1);
    const closed = app.close();
    // No leased work in flight: the server drains already.
    await until(() => !app.getHttpServer().listening);
    controller.work.end();
    await until(() => controller.work.started === 2);
    await closed;
    expect((controller.work.reason as Error).message).toBe(SHUTTING_DOWN());
    expect((await answer).status).toBe(200);
  });
});

describe('after app.close()', () => {
  it('claims are refused as unavailable, and say why', async () => {
    const app = await startApp({});
    await app.close();
    const refused = app.get(LeaseService).acquire('key');
    await expect(refused).rejects.toBeInstanceOf(LeaseUnavailableException);
    await expect(refused).rejects.toMatchObject({ cause: { message: SHUTTING_DOWN() } });
  });

  it('whoever waited has been refused as unavailable', async () => {
    const app = await startApp({});
    const leases = app.get(LeaseService);
    await leases.acquire('key');
    const waiting = leases.acquire('key', { wait: Infinity }).catch((error: unknown) => error);
    await until(() => engineOf(app).awaited === 1);
    await app.close();
    expect(await waiting).toBeInstanceOf(LeaseUnavailableException);
    expect(engineOf(app).awaited).toBe(0);
  });

  it('the event streams have completed and nothing is due any more', async () => {
    const app = await startApp({ providers: [Jobs] });
    await until(() => app.get(ElectionService).leadership('led').isLeader);
    const ended: string[] = [];
    app.get(LeaseService).events$.subscribe({ complete: () => ended.push('events$') });
    app.get(LeaseService).lost$.subscribe({ complete: () => ended.push('lost$') });
    await app.close();
    expect(ended).toEqual(['events$', 'lost$']);
    expect(engineOf(app).agenda.size).toBe(0);
  });

  it('a second app.close() does nothing', async () => {
    const { store, closings } = countingStore();
    const app = await startApp({ lease: { store }, providers: [Jobs] });
    await app.close();
    await app.close();
    expect(closings()).toBe(1);
  });
});

/** An embedded store that counts how often it was closed. */
function countingStore(): { store: MemoryLeaseStore; closings: () => number } {
  let closings = 0;
  class CountingStore extends MemoryLeaseStore {
    override async close(): Promise<void> {
      closings++;
    }
  }
  return { store: new CountingStore(), closings: () => closings };
}

describe('a store that several applications share', () => {
  it('is closed once, by the last of them', async () => {
    const { store, closings } = countingStore();
    const [first, second] = [
      await startApp({ lease: { store } }),
      await startApp({ lease: { store } }),
    ];
    await first.close();
    expect(closings()).toBe(0);
    await second.close();
    expect(closings()).toBe(1);
  });

  it('is not closed under the others by one that is closed twice', async () => {
    const { store, closings } = countingStore();
    const [first] = [await startApp({ lease: { store } }), await startApp({ lease: { store } })];
    await first.close();
    await first.close();
    expect(closings()).toBe(0);
  });

  it('is not closed under the others by one that was never initialised', async () => {
    const { store, closings } = countingStore();
    await startApp({ lease: { store } });
    const never = await NestFactory.create(LeaseModule.forRoot({ store }), { logger: false });
    await never.close();
    expect(closings()).toBe(0);
  });

  it('is left by one whose start failed half-way', async () => {
    const { store, closings } = countingStore();
    @Injectable()
    class Broken implements OnModuleInit {
      onModuleInit(): void {
        throw new Error('of the application');
      }
    }
    @Module({ imports: [LeaseModule.forRoot({ store })], providers: [Broken, Jobs] })
    class BrokenModule {}
    const app = await NestFactory.create(BrokenModule, { logger: false, abortOnError: false });
    await expect(app.init()).rejects.toThrow('of the application');
    await app.close();
    expect(closings()).toBe(1);
    expect(store.size).toBe(0);
  });
});

describe('a store that cannot', () => {
  it('open does not keep the application from starting, and is spoken of', async () => {
    const error = new Error('no way.');
    class Sealed extends MemoryLeaseStore {
      open(): Promise<void> {
        throw error;
      }
    }
    const logger = new CapturingLogger();
    await startApp({ lease: { store: new Sealed() }, logger });
    await until(() => logger.of('warn').includes(STORE_NOT_OPEN('memory', error)));
  });

  it('close does not keep the application from ending, and is spoken of', async () => {
    const error = new Error('no way.');
    class Jammed extends MemoryLeaseStore {
      override close(): Promise<void> {
        throw error;
      }
    }
    const logger = new CapturingLogger();
    const app = await startApp({ lease: { store: new Jammed() }, logger });
    await app.close();
    expect(logger.of('warn')).toContain(STORE_NOT_CLOSED('memory', error));
  });
});

describe('on Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('a second application can use the store that the first has closed', async () => {
    const store = new RedisLeaseStore(redis.url);
    const logger = new CapturingLogger();
    const first = await startApp({ lease: { store } });
    await first.get(LeaseService).run('key', () => 'ran');
    await first.close();
    const second = await startApp({ lease: { store }, logger });
    expect(await second.get(LeaseService).run('key', () => 'ran again')).toBe('ran again');
    await second.close();
    expect(logger.of('warn')).toEqual([]);
  });

  it('what was held is free after app.close(), a lease that nobody gave back included', async () => {
    const [app, other] = [
      await startApp({ lease: { store: new RedisLeaseStore(redis.url) }, providers: [Jobs] }),
      await startApp({ lease: { store: new RedisLeaseStore(redis.url) } }),
    ];
    await until(() => app.get(ElectionService).leadership('led').isLeader);
    await app.get(LeaseService).acquire('forgotten');
    await app.close();
    const lease = await other.get(LeaseService).tryAcquire('forgotten');
    expect(lease).not.toBeNull();
    await until(() => other.get(ElectionService).leadership('led').isLeader, { within: 2_000 });
  });
});

@Injectable()
class Patient {
  ran = 0;

  @Timeout(1)
  @WithLease('taken', { wait: '5s' })
  async job(): Promise<void> {
    this.ran++;
  }
}

describe('scheduled work that waits for its lease when the application goes down', () => {
  it('does not begin when it gets the lease after all', async () => {
    const app = await startApp({
      schedule: true,
      providers: [Patient],
      lease: { shutdownGrace: '2s' },
    });
    let end!: () => void;
    void app.get(LeaseService).run('taken', () => new Promise<void>((resolve) => (end = resolve)));
    await until(() => app.get(LeaseEngine).awaited === 1);
    const closed = app.close();
    await new Promise(setImmediate);
    end();
    await closed;
    expect(app.get(Patient).ran).toBe(0);
  });

  it('is skipped, not logged as an error', async () => {
    const logger = new CapturingLogger();
    const store = new MemoryLeaseStore();
    const other = await startApp({ lease: { store } });
    await other.get(LeaseService).acquire('taken');
    const lease = { store, shutdownGrace: 50 };
    const app = await startApp({ schedule: true, providers: [Patient], lease, logger });
    await until(() => app.get(LeaseEngine).awaited === 1);
    await app.close();
    expect(logger.of('error')).toEqual([]);
    expect(logger.of('debug')).toContain(SKIPPED('Patient.job', SKIPPED_CLOSING()));
  });
});
