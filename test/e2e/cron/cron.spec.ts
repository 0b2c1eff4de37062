import { Injectable, type INestApplicationContext } from '@nestjs/common';
import { Cron, SchedulerRegistry } from '@nestjs/schedule';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CronTime } from 'cron';
import { LEASE_DONE, LEASE_HELD, SKIPPED } from '../../../lib/lease.messages.js';
import {
  Fence,
  LeaseService,
  MemoryLeaseStore,
  WithLease,
  type LeaseEvent,
  type ReleaseHow,
} from 'nestjs-lease';
import { CapturingLogger, closeApps, startApp, startFleet } from '../../support/nest-app.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const EVERY_MINUTE = '0 * * * * *';

/** What ran, in the whole fleet. */
let ran: { job: string; by: object; at: string; fence?: number | undefined }[] = [];
/** What the next runs do: finish at once, unless a test says otherwise. */
let work: () => Promise<unknown> = async () => {};

const note = (job: string, by: object, fence?: number): void => {
  ran.push({ job, by, fence, at: new Date().toISOString() });
};
const runsOf = (job: string): number => ran.filter((run) => run.job === job).length;

@Injectable()
class Books {
  @Cron(EVERY_MINUTE, { timeZone: 'UTC' })
  @WithLease()
  async close(@Fence() fence?: number): Promise<void> {
    note('close', this, fence);
    await work();
  }
}

const jobsOf = (app: INestApplicationContext) => [
  ...app.get(SchedulerRegistry, { strict: false }).getCronJobs().values(),
];
const stopJobs = (app: INestApplicationContext): void => jobsOf(app).forEach((job) => job.stop());
const startJobs = (app: INestApplicationContext): void => jobsOf(app).forEach((job) => job.start());

const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const START = Date.parse('2026-05-04T10:00:30Z');

/** Lets an instance fire whose clock is that far behind: for it, it is now so much earlier. */
async function fireBehind(app: INestApplicationContext, behind: number): Promise<void> {
  jest.setSystemTime(Date.now() - behind);
  startJobs(app);
}

beforeEach(() => {
  jest.useFakeTimers({ now: START, doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  ran = [];
  work = async () => {};
});

afterEach(async () => {
  await closeApps();
  jest.useRealTimers();
});

describe('@Cron under @WithLease', () => {
  it('runs once per tick in a fleet of three, though each run is over before the next instance fires', async () => {
    await startFleet(3, { providers: [Books], schedule: true });
    await pass(5 * MINUTE);
    expect(ran.map(({ at }) => at.slice(11, 19))).toEqual([
      '10:01:00',
      '10:02:00',
      '10:03:00',
      '10:04:00',
      '10:05:00',
    ]);
  });

  it('gives each run a higher fence (rule 8)', async () => {
    await startFleet(2, { providers: [Books], schedule: true });
    await pass(3 * MINUTE);
    const fences = ran.map(({ fence }) => fence!);
    expect(fences).toHaveLength(3);
    expect(fences[1]).toBeGreaterThan(fences[0]!);
    expect(fences[2]).toBeGreaterThan(fences[1]!);
  });

  it.each([[10 * SECOND], [30 * SECOND], [90 * SECOND]])(
    'does not run a tick again on an instance whose clock is %d ms behind',
    async (behind) => {
      const [onTime, late] = await startFleet(2, { providers: [Books], schedule: true });
      stopJobs(late!);
      await pass(30 * SECOND);
      expect(runsOf('close')).toBe(1);
      stopJobs(onTime!);
      await pass(behind - SECOND);
      await fireBehind(late!, behind);
      await pass(2 * SECOND);
      expect(runsOf('close')).toBe(1);
      await pass(MINUTE);
      expect(runsOf('close')).toBe(2);
    },
  );

  it('lets the next instance that fires in the same tick take over a run that failed', async () => {
    const [first, second] = await startFleet(2, { providers: [Books], schedule: true });
    stopJobs(second!);
    work = () => Promise.reject(new Error('disk full'));
    await pass(30 * SECOND);
    stopJobs(first!);
    work = async () => {};
    await pass(29 * SECOND);
    await fireBehind(second!, 30 * SECOND);
    await pass(2 * SECOND);
    expect(ran.map(({ by }) => by)).toEqual([first!.get(Books), second!.get(Books)]);
  });

  it('skips on the others with a debug line and a refused event, and without an ERROR', async () => {
    const logger = new CapturingLogger();
    const fleet = await startFleet(2, { providers: [Books], schedule: true, logger });
    const refused: LeaseEvent[] = [];
    for (const app of fleet) {
      app.get(LeaseService).events$.subscribe((event) => {
        if (event.type === 'refused') refused.push(event);
      });
    }
    await pass(30 * SECOND);
    const done = LEASE_DONE('Books.close', 'tick 2026-05-04T10:01:00.000Z');
    expect(logger.of('debug')).toContain(SKIPPED('Books.close', done));
    expect(refused).toMatchObject([{ key: 'Books.close', reason: 'done' }]);
    expect(logger.of('error', 'fatal')).toEqual([]);
  });

  it('skips without an ERROR while another instance is still at an earlier tick', async () => {
    const logger = new CapturingLogger();
    await startFleet(2, { providers: [Books], schedule: true, logger });
    let finish!: () => void;
    work = () => new Promise<void>((resolve) => (finish = resolve));
    await pass(2 * MINUTE);
    expect(ran).toHaveLength(1);
    expect(logger.of('debug').filter((line) => /is held/.test(String(line)))).toHaveLength(3);
    expect(logger.of('debug')).toContainEqual(
      expect.stringContaining(SKIPPED('Books.close', LEASE_HELD('Books.close', 1)).slice(0, 40)),
    );
    expect(logger.of('error', 'fatal')).toEqual([]);
    finish();
  });

  it('logs what the handler itself threw, as @nestjs/schedule does', async () => {
    const logger = new CapturingLogger();
    await startApp({ providers: [Books], schedule: true, logger });
    const error = new Error('disk full');
    work = () => Promise.reject(error);
    await pass(30 * SECOND);
    expect(logger.of('error')).toEqual([error]);
  });
});

describe('a @Cron method that is called by hand', () => {
  @Injectable()
  class Patient {
    @Cron(EVERY_MINUTE, { timeZone: 'UTC', waitForCompletion: true })
    @WithLease()
    async slow(): Promise<void> {
      note('slow', this);
      await work();
    }
  }

  it('runs, though its tick was run already', async () => {
    const app = await startApp({ providers: [Books], schedule: true });
    await pass(31 * SECOND);
    await app.get(Books).close();
    await app.get(Books).close();
    expect(runsOf('close')).toBe(3);
  });

  it('leaves no mark: the next tick is run', async () => {
    const app = await startApp({ providers: [Books], schedule: true });
    await app.get(Books).close();
    await pass(30 * SECOND);
    expect(runsOf('close')).toBe(2);
  });

  it('is still one at a time', async () => {
    const app = await startApp({ providers: [Books], schedule: true });
    let finish!: () => void;
    work = () => new Promise<void>((resolve) => (finish = resolve));
    const first = app.get(Books).close();
    await pass(0);
    await app.get(Books).close();
    finish();
    await first;
    expect(runsOf('close')).toBe(1);
  });

  it('runs with waitForCompletion too', async () => {
    const app = await startApp({ providers: [Patient], schedule: true });
    await pass(31 * SECOND);
    await app.get(Patient).slow();
    expect(runsOf('slow')).toBe(2);
  });

  it('runs while another job of the same schedule is being waited for', async () => {
    const app = await startApp({ providers: [Patient, Books], schedule: true });
    let finish!: () => void;
    let isFirst = true;
    work = () => {
      if (!isFirst) return Promise.resolve();
      isFirst = false;
      return new Promise<void>((resolve) => (finish = resolve));
    };
    await pass(31 * SECOND);
    expect([runsOf('slow'), runsOf('close')]).toEqual([1, 1]);
    await app.get(Books).close();
    finish();
    expect(runsOf('close')).toBe(2);
  });

  it('runs while a job without a lease is being waited for', async () => {
    let finish!: () => void;
    @Injectable()
    class Unleased {
      @Cron(EVERY_MINUTE, { timeZone: 'UTC', waitForCompletion: true })
      run(): Promise<void> {
        return new Promise((resolve) => (finish = resolve));
      }
    }
    const app = await startApp({ providers: [Books, Unleased], schedule: true });
    await pass(31 * SECOND);
    await app.get(Books).close();
    finish();
    expect(runsOf('close')).toBe(2);
  });

  it('runs on an instance whose own job of that name is being waited for, under another key', async () => {
    @Injectable()
    class PerTenant {
      @Cron(EVERY_MINUTE, { timeZone: 'UTC', waitForCompletion: true })
      @WithLease((tenant?: unknown) => `tenant:${typeof tenant === 'string' ? tenant : 'all'}`)
      async export(tenant?: unknown): Promise<void> {
        note(`export ${typeof tenant === 'string' ? tenant : 'all'}`, this);
        if (tenant === undefined) await work();
      }
    }
    const app = await startApp({ providers: [PerTenant], schedule: true });
    let finish!: () => void;
    work = () => new Promise<void>((resolve) => (finish = resolve));
    await pass(31 * SECOND);
    await app.get(PerTenant).export('a');
    await app.get(PerTenant).export('a');
    finish();
    expect(runsOf('export a')).toBe(2);
  });
});

describe('a job that is fired by hand', () => {
  it('runs, though its tick was run already', async () => {
    const app = await startApp({ providers: [Books], schedule: true });
    await pass(31 * SECOND);
    await Promise.all(jobsOf(app).map((job) => job.fireOnTick()));
    await pass(0);
    expect(runsOf('close')).toBe(2);
  });
});

describe('a @Cron method that subclasses inherit', () => {
  abstract class Report {
    @Cron(EVERY_MINUTE, { waitForCompletion: true })
    @WithLease()
    async write(): Promise<void> {
      note(this.constructor.name, this);
      await work();
    }
  }
  @Injectable()
  class Daily extends Report {}
  @Injectable()
  class Weekly extends Report {}

  it('runs once per tick in the fleet for each of them', async () => {
    await startFleet(2, { providers: [Daily, Weekly], schedule: true });
    await pass(2 * MINUTE);
    expect([runsOf('Daily'), runsOf('Weekly')]).toEqual([2, 2]);
  });
});

describe('a schedule that is changed at run time', () => {
  @Injectable()
  class Named {
    @Cron(EVERY_MINUTE, { name: 'named', timeZone: 'UTC' })
    @WithLease()
    async run(): Promise<void> {
      note('named', this);
    }
  }

  it('still runs a named job once per tick, of the new schedule', async () => {
    const fleet = await startFleet(3, { providers: [Named], schedule: true });
    for (const app of fleet) {
      const registry = app.get(SchedulerRegistry, { strict: false });
      registry.getCronJob('named').setTime(new CronTime('*/10 * * * * *', 'UTC'));
    }
    await pass(MINUTE);
    expect(ran.map(({ at }) => at.slice(14, 19))).toEqual([
      '00:40',
      '00:50',
      '01:00',
      '01:10',
      '01:20',
      '01:30',
    ]);
  });

  it('still runs a job without a name once per tick, of the new schedule', async () => {
    const fleet = await startFleet(3, { providers: [Books], schedule: true });
    for (const app of fleet) {
      for (const job of jobsOf(app)) job.setTime(new CronTime('*/10 * * * * *', 'UTC'));
    }
    await pass(MINUTE);
    expect(runsOf('close')).toBe(6);
  });
});

describe('what the options of @WithLease make of a @Cron method', () => {
  @Injectable()
  class Choices {
    @Cron(EVERY_MINUTE)
    @WithLease('plain', { oncePerTick: false })
    async oneAtATime(): Promise<void> {
      note('one at a time', this);
    }

    @Cron(EVERY_MINUTE)
    @WithLease('yearly', { once: 'migration 7' })
    async onceOnly(): Promise<void> {
      note('once only', this);
    }

    @Cron(EVERY_MINUTE)
    @WithLease('shared', { permits: 3 })
    async shared(): Promise<void> {
      note('shared', this);
    }

    @Cron(EVERY_MINUTE)
    @WithLease('loud', { onHeld: 'throw' })
    async loud(): Promise<void> {
      note('loud', this);
    }
  }

  it('oncePerTick: false runs one at a time, on every instance', async () => {
    await startFleet(3, { providers: [Choices], schedule: true });
    await pass(30 * SECOND);
    expect(runsOf('one at a time')).toBe(3);
  });

  it('once of the user’s own outlives the tick', async () => {
    await startFleet(3, { providers: [Choices], schedule: true });
    await pass(5 * MINUTE);
    expect(runsOf('once only')).toBe(1);
  });

  it('permits above one mean several instances per tick', async () => {
    await startFleet(3, { providers: [Choices], schedule: true });
    await pass(30 * SECOND);
    expect(runsOf('shared')).toBe(3);
  });

  it("onHeld: 'throw' is an ERROR of the job, because the user asked for it", async () => {
    const logger = new CapturingLogger();
    await startFleet(2, { providers: [Choices], schedule: true, logger });
    await pass(30 * SECOND);
    expect(logger.of('error')).toMatchObject([{ code: 'LEASE_DONE', key: 'loud' }]);
  });
});

describe('the marks that ticks leave', () => {
  @Injectable()
  class EverySecond {
    @Cron('* * * * * *', { timeZone: 'UTC' })
    @WithLease()
    async beat(): Promise<void> {
      note('beat', this);
    }
  }

  class RecordingStore extends MemoryLeaseStore {
    readonly released: ReleaseHow[] = [];
    override release(...[hold, how]: Parameters<MemoryLeaseStore['release']>): Promise<boolean> {
      this.released.push(how);
      return super.release(hold, how);
    }
  }

  it('are remembered for minutes: an every-second job leaves a bounded number of them', async () => {
    const store = new RecordingStore();
    await startFleet(2, { providers: [EverySecond], schedule: true, lease: { store } });
    await pass(5 * SECOND);
    expect(runsOf('beat')).toBe(5);
    const seconds = store.released.map(({ done }) => done!.remember / SECOND);
    expect(seconds).toEqual(Array.from({ length: 5 }, () => 121));
  });

  it('are remembered for a day at most: a yearly job leaves none for a year', async () => {
    @Injectable()
    class Yearly {
      @Cron('0 0 1 1 *', { timeZone: 'UTC' })
      @WithLease()
      async party(): Promise<void> {
        note('party', this);
      }
    }
    const store = new RecordingStore();
    jest.setSystemTime(Date.parse('2026-12-31T23:59:59Z'));
    await startFleet(2, { providers: [Yearly], schedule: true, lease: { store } });
    await pass(2 * SECOND);
    expect(runsOf('party')).toBe(1);
    expect(store.released[0]!.done).toEqual({
      once: 'tick 2027-01-01T00:00:00.000Z',
      remember: 24 * 60 * MINUTE,
    });
  });
});

describe('daylight saving', () => {
  @Injectable()
  class Nightly {
    @Cron('30 2 * * *', { timeZone: 'Europe/Berlin' })
    @WithLease()
    async night(): Promise<void> {
      note('night', this);
    }

    @Cron('0 * * * *', { timeZone: 'Europe/Berlin' })
    @WithLease()
    async hourly(): Promise<void> {
      note('hourly', this);
    }
  }

  const hours = (job: string): string[] =>
    ran.filter((run) => run.job === job).map(({ at }) => at.slice(11, 16));

  it('runs the hour that comes twice twice, and a job of that hour once', async () => {
    jest.setSystemTime(Date.parse('2027-10-30T22:30:00Z'));
    await startFleet(2, { providers: [Nightly], schedule: true });
    await pass(5 * 60 * MINUTE);
    expect(hours('hourly')).toEqual(['23:00', '00:00', '01:00', '02:00', '03:00']);
    expect(hours('night')).toEqual(['00:30']);
  });

  it('runs a job of the hour that does not come once, at its end', async () => {
    jest.setSystemTime(Date.parse('2027-03-27T23:30:00Z'));
    await startFleet(2, { providers: [Nightly], schedule: true });
    await pass(3 * 60 * MINUTE);
    expect(hours('hourly')).toEqual(['00:00', '01:00', '02:00']);
    expect(hours('night')).toEqual(['01:00']);
  });
});
