import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, type INestApplicationContext, type OnModuleInit } from '@nestjs/common';
import {
  CurrentLease,
  ElectionService,
  Fence,
  Lease,
  LeaderOnly,
  LeaseLostException,
  LeaseService,
  MemoryLeaseStore,
  NotLeaderException,
  OnDeposed,
  OnElected,
  type DeposedEvent,
  type ElectedEvent,
  type LeaseModuleOptions,
  type LeaseStore,
} from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';
import { CAMPAIGN_FAILED, HOOK_FAILED } from '../../../lib/lease.messages.js';
import { CapturingLogger, startApp } from '../../support/nest-app.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { until } from '../../support/until.js';

@Injectable()
class Outbox {
  readonly heard: string[] = [];
  ended = 0;
  signal: AbortSignal | undefined;

  @LeaderOnly('outbox')
  async fence(@Fence() fence: number): Promise<number> {
    return fence;
  }

  /** Until it is told to stop. */
  @LeaderOnly('outbox')
  async dispatch(@CurrentLease() lease: Lease): Promise<string> {
    this.signal = lease.signal;
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    this.ended++;
    return 'stopped';
  }

  @OnElected('outbox')
  async slow({ fence }: ElectedEvent): Promise<void> {
    this.heard.push(`elected ${fence}`);
    await new Promise(() => {});
  }

  @OnElected('outbox')
  async broken(): Promise<void> {
    throw new Error('of the hook');
  }

  @OnDeposed('outbox')
  onDeposed({ reason, fence }: DeposedEvent): void {
    this.heard.push(`${reason} ${fence}`);
  }
}

const outboxOf = (app: INestApplicationContext): Outbox => app.get(Outbox);
const leadershipOf = (app: INestApplicationContext) =>
  app.get(ElectionService).leadership('outbox');
const leads = (app: INestApplicationContext): boolean => leadershipOf(app).isLeader;

const TTL = 1_000;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const stores: [string, () => () => LeaseStore][] = [
  [
    'embedded',
    () => {
      const store = new MemoryLeaseStore();
      return () => store;
    },
  ],
  // Each instance has a connection of its own.
  ['Redis', () => () => new RedisLeaseStore(redis.url)],
];

let fleets = 0;

describe.each(stores)('a fleet on the %s store', (_, openStore) => {
  async function startFleet(size: number, options: LeaseModuleOptions = {}) {
    const newStore = openStore();
    const namespace = `fleet-${++fleets}`;
    const logger = new CapturingLogger();
    const fleet: INestApplicationContext[] = [];
    for (let i = 0; i < size; i++) {
      const lease = { store: newStore(), namespace, ttl: TTL, instance: `i-${i}`, ...options };
      fleet.push(await startApp({ lease, providers: [Outbox], logger }));
    }
    const leader = await until(() => fleet.find(leads));
    const others = fleet.filter((app) => app !== leader);
    return { fleet, leader, others, logger };
  }

  it('elects one of three', async () => {
    const { fleet } = await startFleet(3);
    await until(() => fleet.filter(leads).length === 1);
    for (let looks = 0; looks < 20; looks++) {
      await new Promise((resolve) => setImmediate(resolve));
      expect(fleet.filter(leads)).toHaveLength(1);
    }
  });

  it('hands over on app.close() at once, to a higher fence', async () => {
    const { leader, others } = await startFleet(3);
    const fence = leadershipOf(leader).lease!.fence;
    const at = performance.now();
    await leader.close();
    const successor = await until(() => others.find(leads));
    expect(performance.now() - at).toBeLessThan(TTL * 0.7);
    expect(leadershipOf(successor).lease!.fence).toBeGreaterThan(fence);
  });

  it('runs @LeaderOnly work on the leader alone, with the fence of the leadership', async () => {
    const { leader, others } = await startFleet(3);
    expect(await outboxOf(leader).fence(0)).toBe(leadershipOf(leader).lease!.fence);
    for (const other of others) {
      await expect(outboxOf(other).fence(0)).rejects.toBeInstanceOf(NotLeaderException);
    }
  });

  it('stops work in flight before it hands over (rule 11)', async () => {
    const { leader, others } = await startFleet(2, { shutdownGrace: 50 });
    const work = outboxOf(leader).dispatch(undefined as unknown as Lease);
    let endedBefore: number | undefined;
    leadershipOf(others[0]!).isLeader$.subscribe((isLeader) => {
      if (isLeader) endedBefore = outboxOf(leader).ended;
    });
    await leadershipOf(leader).stepDown();
    await until(() => leads(others[0]!));
    expect(endedBefore).toBe(1);
    expect(await work).toBe('stopped');
  });

  it('calls hooks in the order of events, and waits for none of them', async () => {
    const { leader, others, logger } = await startFleet(2);
    const { heard } = outboxOf(leader);
    const fence = leadershipOf(leader).lease!.fence;
    await leadershipOf(leader).stepDown();
    const [successor] = others as [INestApplicationContext];
    await until(() => leads(successor));
    await successor.close();
    await until(() => heard.length === 3);
    expect(heard).toEqual([
      `elected ${fence}`,
      `stepped-down ${fence}`,
      `elected ${leadershipOf(leader).lease!.fence}`,
    ]);
    expect(logger.of('error')).toContain(HOOK_FAILED('Outbox.broken'));
  });

  it('lets an instance that falls ill step down, and the healthy one lead', async () => {
    let isIll = true;
    const store = openStore();
    const namespace = `fleet-${++fleets}`;
    const healthOf = (name: string): LeaseModuleOptions => ({
      store: store(),
      namespace,
      instance: name,
      ttl: TTL,
      election: { campaignWhen: () => name === 'well' || !isIll },
    });
    isIll = false;
    const ill = await startApp({ lease: healthOf('ill'), providers: [Outbox] });
    await until(() => leads(ill));
    const well = await startApp({ lease: healthOf('well'), providers: [Outbox] });
    isIll = true;
    await until(() => leads(well));
    expect(leads(ill)).toBe(false);
    expect(outboxOf(ill).heard[1]).toMatch(/^unhealthy /);
  });
});

describe('an application', () => {
  it('campaigns from bootstrap, not before', async () => {
    const store = new MemoryLeaseStore();
    const held: unknown[] = [];
    @Injectable()
    class Early implements OnModuleInit {
      constructor(private readonly elections: ElectionService) {}
      async onModuleInit(): Promise<void> {
        this.elections.leadership('outbox');
        await new Promise((resolve) => setImmediate(resolve));
        for await (const record of store.list()) held.push(record);
      }
    }
    const app = await startApp({ lease: { store }, providers: [Early] });
    expect(held).toEqual([]);
    await until(() => leads(app));
  });

  it('campaigns at once for a group that is asked for later', async () => {
    const app = await startApp({});
    await until(() => app.get(ElectionService).leadership('late').isLeader);
  });

  it('closes while campaignWhen gives no answer', async () => {
    const app = await startApp({
      lease: { election: { campaignWhen: () => new Promise(() => {}) } },
      providers: [Outbox],
    });
    await app.close();
    expect(leads(app)).toBe(false);
  });

  it('says once that campaignWhen throws, and goes on', async () => {
    const logger = new CapturingLogger();
    let asked = 0;
    const campaignWhen = (): boolean => {
      if (++asked <= 3) throw new Error('no idea');
      return true;
    };
    const app = await startApp({
      lease: { ttl: 400, election: { campaignWhen } },
      providers: [Outbox],
      logger,
    });
    await until(() => leads(app));
    expect(logger.of('error').filter((line) => line === CAMPAIGN_FAILED('outbox'))).toHaveLength(1);
  });

  it('never campaigns again after it was closed', async () => {
    const app = await startApp({ providers: [Outbox] });
    await app.close();
    const late = app.get(ElectionService).leadership('late');
    await new Promise((resolve) => setImmediate(resolve));
    expect([late.isLeader, leads(app)]).toEqual([false, false]);
  });
});

describe('when Redis goes away', () => {
  it('the leader knows in time, its work is aborted and rejects, and it leads again after', async () => {
    const server = await startRedis();
    try {
      const store = new RedisLeaseStore(server.url);
      const app = await startApp({ lease: { store, ttl: TTL }, providers: [Outbox] });
      await until(() => leads(app));
      const first = leadershipOf(app).lease!;
      let renewedAt = performance.now();
      app.get(LeaseService).events$.subscribe(({ type }) => {
        if (type === 'renewed') renewedAt = performance.now();
      });
      const work = outboxOf(app).dispatch(undefined as unknown as Lease);
      await server.kill();
      await expect(work).rejects.toBeInstanceOf(LeaseLostException);
      // Trust is 5/6 of the ttl; the rest is for a busy machine.
      expect(performance.now() - renewedAt).toBeLessThan(TTL);
      expect(first.signal.reason).toBeInstanceOf(LeaseLostException);
      expect(outboxOf(app).heard).toEqual([`elected ${first.fence}`, `expired ${first.fence}`]);
      await server.start();
      await until(() => leads(app));
      expect(leadershipOf(app).lease!.fence).toBeGreaterThan(first.fence);
    } finally {
      await server.stop();
    }
  });
});
