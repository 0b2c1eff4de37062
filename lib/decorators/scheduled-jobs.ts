import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { MethodCall } from './wrap-method.js';

/** Private to @nestjs/schedule; pinned by a test. */
const SCHEDULER_TYPE = 'SCHEDULER_TYPE';
const SCHEDULE_CRON_OPTIONS = 'SCHEDULE_CRON_OPTIONS';
const SCHEDULE_INTERVAL_OPTIONS = 'SCHEDULE_INTERVAL_OPTIONS';
const TYPES = { cron: 1, timeout: 2, interval: 3 } as const;

/** As much of cron's `CronTime` and `CronJob` as is used here. */
interface CronTime {
  readonly source: unknown;
  readonly realDate: boolean;
  readonly timeZone?: string;
  readonly utcOffset?: number;
  getNextDateFrom(start: Date, timeZone?: string): { toMillis(): number };
}
interface CronJob {
  readonly cronTime: CronTime;
  readonly isCallbackRunning?: boolean;
}
interface SchedulerRegistry {
  getCronJobs(): Map<string, CronJob>;
}

/** A scheduled time: the same on every instance that runs this schedule, whatever its clock says. */
export interface Tick {
  readonly at: Date;
  /** Milliseconds to the next one. */
  readonly period: number;
}

export type Scheduled =
  /** Without a tick when it was called by hand rather than by its job. */
  | { readonly by: 'cron'; readonly tick: Tick | undefined }
  | { readonly by: 'interval'; readonly every: number }
  | { readonly by: 'timeout' };

const SECOND = 1_000;
/** How far back a tick is looked for, step by step: most fire at once, a yearly one may be looked for by hand. */
const LOOK_BACK = [2, 61, 3_601, 86_401, 32 * 86_400, 367 * 86_400].map((s) => s * SECOND);
/** cron never fires early; a clock that was set back by a little must still not name the tick before. */
const EARLY = 50;

/** Tells whether a call comes from @nestjs/schedule, and for which tick. */
@Injectable()
export class ScheduledJobs {
  #registry: SchedulerRegistry | undefined;

  constructor(private readonly discovery: DiscoveryService) {}

  /** To be asked while the caller is still on the stack: that is how a job that fires is recognised. */
  of(call: MethodCall): Scheduled | undefined {
    // The outermost function has the metadata when several wrappers are around a method.
    const outermost = (call.instance as Record<string | symbol, object | undefined>)[
      call.methodName
    ];
    const method = [call.method, outermost ?? call.method].find((one) =>
      Reflect.hasMetadata(SCHEDULER_TYPE, one),
    );
    if (method === undefined) return undefined;
    switch (Reflect.getMetadata(SCHEDULER_TYPE, method)) {
      case TYPES.cron:
        return { by: 'cron', tick: this.#tickOf(method) };
      case TYPES.interval: {
        const { timeout } = Reflect.getMetadata(SCHEDULE_INTERVAL_OPTIONS, method) as {
          timeout: number;
        };
        return { by: 'interval', every: timeout };
      }
      default:
        return { by: 'timeout' };
    }
  }

  #tickOf(method: object): Tick | undefined {
    const { name, cronTime } = Reflect.getMetadata(SCHEDULE_CRON_OPTIONS, method) as {
      name?: string;
      cronTime: unknown;
    };
    const job = this.#firing(name, cronTime);
    return job === undefined ? undefined : latestTick(job.cronTime, Date.now());
  }

  /** The job whose callback is being called. Its own schedule counts: it may have been changed since it was declared. */
  #firing(name: string | undefined, source: unknown): CronJob | undefined {
    const jobs = this.#findRegistry()?.getCronJobs();
    if (jobs === undefined) return undefined;
    const candidates =
      name === undefined
        ? [...jobs.values()].filter(({ cronTime }) => isSame(cronTime, source))
        : [jobs.get(name)].filter((job) => job !== undefined);
    // Before cron 4 a job does not say whether it fires: then every call counts as a tick.
    return candidates.find((job) => job.isCallbackRunning ?? true);
  }

  #findRegistry(): SchedulerRegistry | undefined {
    // By name: the application may have another copy of @nestjs/schedule than we could import, or none.
    this.#registry ??= this.discovery
      .getProviders()
      .find(({ name, instance }) => name === 'SchedulerRegistry' && instance?.getCronJobs)
      ?.instance as SchedulerRegistry | undefined;
    return this.#registry;
  }
}

function isSame({ source, realDate }: CronTime, declared: unknown): boolean {
  return realDate ? Number(source) === Number(declared) : source === declared;
}

/** The tick that a job which fires at `now` fires for. */
export function latestTick(time: CronTime, now: number): Tick | undefined {
  if (time.realDate) return { at: new Date(Number(time.source)), period: LOOK_BACK.at(-1)! };
  const zone = time.timeZone ?? (time.utcOffset === undefined ? undefined : zoneOf(time.utcOffset));
  const after = (ms: number): number => time.getNextDateFrom(new Date(ms), zone).toMillis();
  const latest = now + EARLY;
  for (const back of LOOK_BACK) {
    let tick = after(now - back);
    if (tick > latest) continue;
    let next = after(tick);
    while (next <= latest) {
      tick = next;
      next = after(tick);
    }
    return { at: new Date(tick), period: next - tick };
  }
  return undefined;
}

function zoneOf(utcOffset: number): string {
  const minutes = Math.abs(utcOffset);
  const two = (figure: number): string => String(figure).padStart(2, '0');
  return `UTC${utcOffset < 0 ? '-' : '+'}${two(Math.trunc(minutes / 60))}:${two(minutes % 60)}`;
}
