import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { describe, expect, it } from '@jest/globals';
import {
  LEASE_STORE_UNAVAILABLE,
  RAN_WITHOUT_LEASE,
  SKIPPED,
} from '../../../lib/lease.messages.js';
import {
  CurrentLease,
  Fence,
  LeaderOnly,
  LeaseDoneException,
  LeaseHeldException,
  LeaseService,
  LeaseUnavailableException,
  MemoryLeaseStore,
  NotLeaderException,
  WithLease,
  type Lease,
  type LeaseEvent,
} from 'nestjs-lease';
import { CapturingLogger, startApp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

class FailingStore extends MemoryLeaseStore {
  readonly error = new Error('connection reset');
  isDown = true;
  override acquire(...args: Parameters<MemoryLeaseStore['acquire']>) {
    return this.isDown ? Promise.reject(this.error) : super.acquire(...args);
  }
}

@Injectable()
class Work {
  ran: string[] = [];

  @WithLease('key')
  async byDefault(): Promise<string> {
    return this.note('by default');
  }

  @WithLease('key', { onHeld: 'throw' })
  async throws(): Promise<string> {
    return this.note('throws');
  }

  @WithLease('key', { onHeld: 'skip' })
  async skips(): Promise<string> {
    return this.note('skips');
  }

  @WithLease('key', { wait: '5s' })
  async waits(): Promise<string> {
    return this.note('waits');
  }

  @WithLease('key', { once: 'batch 7' })
  async once(): Promise<string> {
    return this.note('once');
  }

  @WithLease(['b', 'key', 'a'])
  async several(@CurrentLease() lease?: Lease): Promise<string> {
    return this.note(lease!.key);
  }

  @WithLease('key', { onUnavailable: 'skip' })
  async skipsUnavailable(): Promise<string> {
    return this.note('skips');
  }

  @WithLease('key', { onUnavailable: 'run' })
  async runsUnavailable(@Fence() fence?: number, @CurrentLease() lease?: Lease): Promise<string> {
    return this.note(`fence ${fence} lease ${lease}`);
  }

  @Cron('0 0 1 1 *')
  @WithLease('key')
  async scheduled(): Promise<string> {
    return this.note('scheduled');
  }

  @LeaderOnly()
  async leads(): Promise<string> {
    return this.note('leads');
  }

  @LeaderOnly('other', { onNotLeader: 'skip' })
  async leadsOrSkips(): Promise<string> {
    return this.note('leads');
  }

  @Cron('0 0 1 1 *')
  @LeaderOnly()
  async scheduledLeader(): Promise<string> {
    return this.note('leads');
  }

  private note(what: string): string {
    this.ran.push(what);
    return what;
  }
}

async function start(lease: object = {}) {
  const logger = new CapturingLogger();
  const app = await startApp({ providers: [Work], schedule: true, logger, lease });
  const leases = app.get(LeaseService);
  const events: LeaseEvent[] = [];
  leases.events$.subscribe((event) => events.push(event));
  return { work: app.get(Work), leases, logger, events };
}

describe('a key that somebody else holds', () => {
  it.each(['byDefault', 'throws'] as const)('is a LeaseHeldException: %s', async (method) => {
    const { work, leases, events } = await start();
    await using _ = await leases.acquire('key');
    const failure = await work[method]().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LeaseHeldException);
    expect(failure).toMatchObject({ code: 'LEASE_HELD', key: 'key', status: 409 });
    expect(events.at(-1)).toMatchObject({ type: 'refused', reason: 'held', key: 'key' });
    expect(work.ran).toEqual([]);
  });

  it.each(['skips', 'scheduled'] as const)(
    'is a debug line, an event and undefined: %s',
    async (method) => {
      const { work, leases, logger, events } = await start();
      await using _ = await leases.acquire('key');
      expect(await work[method]()).toBeUndefined();
      expect(logger.of('debug')).toEqual([expect.stringContaining(SKIPPED(`Work.${method}`, ''))]);
      expect(logger.of('error', 'fatal')).toEqual([]);
      expect(events.at(-1)).toMatchObject({ type: 'refused', reason: 'held' });
      expect(work.ran).toEqual([]);
    },
  );

  it('is waited for with wait', async () => {
    const { work, leases } = await start();
    const lease = await leases.acquire('key');
    const waiting = work.waits();
    await lease.release();
    expect(await waiting).toBe('waits');
  });

  it('is refused as one of several, and the others are given back', async () => {
    const { work, leases } = await start();
    await using _ = await leases.acquire('key');
    await expect(work.several()).rejects.toMatchObject({ code: 'LEASE_HELD', key: 'key' });
    expect([await leases.inspect('a'), await leases.inspect('b')]).toEqual([null, null]);
  });

  it('is no matter to several keys that are free', async () => {
    const { work } = await start();
    expect(await work.several()).toBe('a + b + key');
  });
});

describe('a unit of work that is done', () => {
  it('is a LeaseDoneException', async () => {
    const { work } = await start();
    await work.once();
    await expect(work.once()).rejects.toBeInstanceOf(LeaseDoneException);
    expect(work.ran).toEqual(['once']);
  });
});

describe('a store that does not answer', () => {
  it.each(['byDefault', 'skips', 'scheduled'] as const)(
    'is a LeaseUnavailableException with the cause, never contention (rule 9): %s',
    async (method) => {
      const store = new FailingStore();
      const { work, events } = await start({ store });
      const failure = await work[method]().catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(LeaseUnavailableException);
      expect(failure).toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE', cause: store.error });
      expect(events.at(-1)).toMatchObject({ reason: 'unavailable', error: store.error });
      expect(work.ran).toEqual([]);
    },
  );

  it("is skipped with a debug line with onUnavailable: 'skip'", async () => {
    const { work, logger } = await start({ store: new FailingStore() });
    expect(await work.skipsUnavailable()).toBeUndefined();
    const why = LEASE_STORE_UNAVAILABLE('key', 'memory');
    expect(logger.of('debug')).toEqual([SKIPPED('Work.skipsUnavailable', why)]);
    expect(work.ran).toEqual([]);
  });

  it("is gone without, and said so, with onUnavailable: 'run'", async () => {
    const { work, logger } = await start({ store: new FailingStore() });
    expect(await work.runsUnavailable()).toBe('fence undefined lease undefined');
    expect(logger.of('warn')).toContain(RAN_WITHOUT_LEASE('Work.runsUnavailable'));
  });

  it("is not a key that is held: onUnavailable: 'run' does not run beside the holder", async () => {
    const store = new FailingStore();
    store.isDown = false;
    const { work, leases } = await start({ store });
    await using _ = await leases.acquire('key');
    await expect(work.runsUnavailable()).rejects.toBeInstanceOf(LeaseHeldException);
  });

  it("is not a lease that was lost: onUnavailable: 'run' does not go on without it (rule 4)", async () => {
    const { work, leases } = await start();
    const running = leases.run(
      'key',
      async (lease) => {
        await until(() => !lease.isHeld);
        await work.runsUnavailable();
      },
      { maxHold: 200 },
    );
    await expect(running).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect(work.ran).toEqual([]);
  });

  it("gives a fence with onUnavailable: 'run' when it does answer", async () => {
    const { work } = await start();
    expect(await work.runsUnavailable()).toMatch(/^fence \d+/);
  });
});

describe('an instance that does not lead', () => {
  const election = { campaignWhen: () => false, group: 'workers' };

  it('is a NotLeaderException of the default group', async () => {
    const { work } = await start({ election });
    const failure = await work.leads().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NotLeaderException);
    expect(failure).toMatchObject({ code: 'NOT_LEADER', group: 'workers', status: 409 });
    expect(work.ran).toEqual([]);
  });

  it.each(['leadsOrSkips', 'scheduledLeader'] as const)(
    'is a debug line and undefined: %s',
    async (method) => {
      const { work, logger } = await start({ election });
      expect(await work[method]()).toBeUndefined();
      expect(logger.of('debug')).toEqual([expect.stringContaining(`Work.${method}`)]);
      expect(logger.of('error', 'fatal')).toEqual([]);
      expect(work.ran).toEqual([]);
    },
  );
});
