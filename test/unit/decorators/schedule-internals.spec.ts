import 'reflect-metadata';
import { describe, expect, it, jest } from '@jest/globals';
import { Cron, Interval, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { CronJob } from 'cron';
import { startApp } from '../../support/nest-app.js';

class Jobs {
  @Cron('* * * * *', { name: 'cron', timeZone: 'UTC' })
  async cron(): Promise<void> {}

  @Interval('interval', 1_000)
  async interval(): Promise<void> {}

  @Timeout(2_000)
  async timeout(): Promise<void> {}
}

const metadata = (method: keyof Jobs, key: string): unknown =>
  Reflect.getMetadata(key, Jobs.prototype[method]);

describe('what @nestjs/schedule keeps to itself and lib/decorators/scheduled-jobs.ts reads', () => {
  it('tells the kind of a job by the metadata SCHEDULER_TYPE: cron 1, timeout 2, interval 3', () => {
    const types = (['cron', 'timeout', 'interval'] as const).map((one) =>
      metadata(one, 'SCHEDULER_TYPE'),
    );
    expect(types).toEqual([1, 2, 3]);
  });

  it('keeps the options of a cron job in the metadata SCHEDULE_CRON_OPTIONS', () => {
    expect(metadata('cron', 'SCHEDULE_CRON_OPTIONS')).toEqual({
      name: 'cron',
      timeZone: 'UTC',
      cronTime: '* * * * *',
    });
  });

  it('keeps the period of an interval in the metadata SCHEDULE_INTERVAL_OPTIONS', () => {
    expect(metadata('interval', 'SCHEDULE_INTERVAL_OPTIONS')).toEqual({ timeout: 1_000 });
  });

  it('calls its registry SchedulerRegistry, with getCronJobs()', () => {
    expect(SchedulerRegistry.name).toBe('SchedulerRegistry');
    expect(new SchedulerRegistry().getCronJobs()).toBeInstanceOf(Map);
  });

  it('keeps each job beside the very options of its decorator in SchedulerOrchestrator.cronJobs', async () => {
    const app = await startApp({ imports: [DiscoveryModule], providers: [Jobs], schedule: true });
    const orchestrator = app
      .get(DiscoveryService)
      .getProviders()
      .find(({ name }) => name === 'SchedulerOrchestrator')!.instance as {
      cronJobs: Record<string, { options: unknown; ref: unknown }>;
    };
    const { options, ref } = orchestrator.cronJobs['cron']!;
    expect(options).toBe(metadata('cron', 'SCHEDULE_CRON_OPTIONS'));
    expect(ref).toBe(app.get(SchedulerRegistry, { strict: false }).getCronJob('cron'));
  });

  it('has jobs that say while they call their callback, and when they last fired', async () => {
    let during: boolean | undefined;
    const job = new CronJob('* * * * *', () => void (during = job.isCallbackRunning));
    await job.fireOnTick();
    expect(during).toBe(true);
    expect(job.isCallbackRunning).toBe(false);
  });

  it('has jobs that know when their timer last fired, as another object each time', async () => {
    jest.useFakeTimers({ now: 0 });
    const seen: unknown[] = [];
    const job = CronJob.from({
      cronTime: '* * * * * *',
      onTick: () => void seen.push(job.lastDate()),
    });
    expect(job.lastDate()).toBeNull();
    job.start();
    await jest.advanceTimersByTimeAsync(2_000);
    await job.fireOnTick();
    void job.stop();
    jest.useRealTimers();
    expect(seen).toEqual([expect.any(Date), expect.any(Date), expect.any(Date)]);
    expect(seen[0]).not.toBe(seen[1]);
    expect(seen[1]).toBe(seen[2]);
  });
});
