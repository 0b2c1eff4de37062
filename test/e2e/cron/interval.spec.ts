import { Injectable } from '@nestjs/common';
import { Interval, Timeout } from '@nestjs/schedule';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LeaseService, MemoryLeaseStore, WithLease } from 'nestjs-lease';
import { CapturingLogger, closeApps, startApp, startFleet } from '../../support/nest-app.js';

let ran: { by: object; at: number }[] = [];
const note = (by: object): void => void ran.push({ by, at: Date.now() });
const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

@Injectable()
class Outbox {
  @Interval(1_000)
  @WithLease()
  async dispatch(): Promise<void> {
    note(this);
  }
}

@Injectable()
class WarmUp {
  @Timeout(500)
  @WithLease()
  async warm(): Promise<void> {
    note(this);
  }
}

beforeEach(() => {
  jest.useFakeTimers({ now: 0, doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  ran = [];
});

afterEach(async () => {
  await closeApps();
  jest.useRealTimers();
});

/** Instances that did not start at the same moment. */
async function startStaggered(
  size: number,
  apart: number,
  provider: typeof Outbox | typeof WarmUp,
) {
  const store = new MemoryLeaseStore();
  const fleet = [];
  for (let i = 0; i < size; i++) {
    fleet.push(await startApp({ providers: [provider], schedule: true, lease: { store } }));
    await pass(apart);
  }
  return fleet;
}

describe('@Interval under @WithLease', () => {
  it('runs once per interval in the fleet', async () => {
    await startFleet(3, { providers: [Outbox], schedule: true });
    await pass(10_000);
    expect(ran.map(({ at }) => at)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((s) => s * 1_000));
  });

  it('runs once per interval when the instances fire at different moments', async () => {
    await startStaggered(3, 300, Outbox);
    await pass(10_000 - Date.now());
    expect(ran.map(({ at }) => at)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((s) => s * 1_000));
  });

  it('never refuses an instance its own next turn', async () => {
    const logger = new CapturingLogger();
    await startApp({ providers: [Outbox], schedule: true, logger });
    await pass(60_000);
    expect(ran).toHaveLength(60);
    expect(logger.of('debug')).toEqual([]);
  });

  it('does not refuse it either when the store took its time over the last one', async () => {
    class SlowAtFirst extends MemoryLeaseStore {
      #delay = 50;
      override async acquire(...args: Parameters<MemoryLeaseStore['acquire']>) {
        const delay = this.#delay;
        this.#delay = 0;
        if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
        return super.acquire(...args);
      }
    }
    const store = new SlowAtFirst();
    await startApp({ providers: [Outbox], schedule: true, lease: { store } });
    await pass(3_000);
    expect(ran.map(({ at }) => at)).toEqual([1_050, 2_000, 3_000]);
  });

  it('goes over to another instance when the one that ran is gone', async () => {
    const [first, second] = await startStaggered(2, 300, Outbox);
    await pass(3_000 - Date.now());
    await first!.close();
    await pass(5_000 - Date.now());
    expect(ran.at(-1)).toEqual({ by: second!.get(Outbox), at: 4_300 });
  });

  it('runs one at a time and on every instance with oncePerTick: false', async () => {
    @Injectable()
    class EachInstance {
      @Interval(1_000)
      @WithLease('each', { oncePerTick: false })
      async beat(): Promise<void> {
        note(this);
      }
    }
    await startFleet(3, { providers: [EachInstance], schedule: true });
    await pass(2_000);
    expect(ran).toHaveLength(6);
  });

  it('leaves a minHold of the user’s own alone', async () => {
    @Injectable()
    class Seldom {
      @Interval(1_000)
      @WithLease('seldom', { minHold: '4500ms' })
      async beat(): Promise<void> {
        note(this);
      }
    }
    await startFleet(2, { providers: [Seldom], schedule: true });
    await pass(11_000);
    expect(ran.map(({ at }) => at)).toEqual([1_000, 6_000, 11_000]);
  });
});

describe('@Timeout under @WithLease', () => {
  it('runs on each instance, one at a time', async () => {
    const fleet = await startStaggered(3, 100, WarmUp);
    await pass(1_000);
    expect(ran.map(({ by }) => by)).toEqual(fleet.map((app) => app.get(WarmUp)));
  });

  it('is skipped without an ERROR while another instance is at it', async () => {
    const logger = new CapturingLogger();
    const store = new MemoryLeaseStore();
    const other = await startApp({ lease: { store } });
    const lease = await other.get(LeaseService).acquire('WarmUp.warm');
    await startApp({ providers: [WarmUp], schedule: true, logger, lease: { store } });
    await pass(1_000);
    await lease.release();
    expect(ran).toEqual([]);
    expect(logger.of('error')).toEqual([]);
    expect(logger.of('debug')).toHaveLength(1);
  });
});
