import 'reflect-metadata';
import { describe, expect, it, jest } from '@jest/globals';
import type { DiscoveryService } from '@nestjs/core';
import { Cron } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { ScheduledJobs } from '../../../lib/decorators/scheduled-jobs.js';

class Jobs {
  @Cron('* * * * * *')
  async tick(): Promise<void> {}
}

const discover = (...providers: { name: string; instance: unknown }[]): DiscoveryService =>
  ({ getProviders: () => providers }) as unknown as DiscoveryService;

const call = {
  instance: new Jobs(),
  args: [],
  methodName: 'tick',
  method: Jobs.prototype.tick,
  label: 'Jobs.tick',
};

describe('a @Cron method', () => {
  it('still has its tick should the inside of @nestjs/schedule change', () => {
    jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) });
    let ticks = 0;
    const job = new CronJob('* * * * * *', () => {
      const scheduled = jobs.of(call);
      if (scheduled?.by === 'cron' && scheduled.tick() !== undefined) ticks++;
    });
    const registry = { getCronJobs: () => new Map([['a name made up by schedule', job]]) };
    const jobs = new ScheduledJobs(discover({ name: 'SchedulerRegistry', instance: registry }));
    job.start();
    jest.advanceTimersByTime(3_000);
    void job.stop();
    jest.useRealTimers();
    expect(ticks).toBe(3);
  });

  it('has none without @nestjs/schedule in the application', () => {
    const scheduled = new ScheduledJobs(discover()).of(call);
    expect(scheduled).toMatchObject({ by: 'cron' });
    expect(scheduled?.by === 'cron' && scheduled.tick()).toBeUndefined();
  });
});
