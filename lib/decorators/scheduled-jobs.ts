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
  /** When its timer last fired: another object each time. */
  lastDate(): Date | null;
}
interface SchedulerRegistry {
  getCronJobs(): Map<string, CronJob>;
}
interface SchedulerOrchestrator {
  /** Every declared job, beside the very object that `@Cron` left on its method. */
  readonly cronJobs: Record<string, { readonly options: CronOptions; readonly ref?: CronJob }>;
}
interface CronOptions {
  readonly name?: string;
  readonly cronTime: unknown;
}

/** A scheduled time: the same on every instance that runs this schedule, whatever its clock says. */
export interface Tick {
  readonly at: Date;
  /** Milliseconds to the next one. */
  readonly period: number;
}

export type Scheduled =
  /** Without a tick when it was called by hand rather than by its job. To be asked at once, and once. */
  | { readonly by: 'cron'; readonly tick: () => Tick | undefined }
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
  /** Which firing of a job was the last to call its method. */
  readonly #answered = new WeakMap<CronJob, Date>();
  readonly #scheduled = new WeakMap<object, boolean>();
  #registry: SchedulerRegistry | undefined;
  #orchestrator: SchedulerOrchestrator | undefined;

  constructor(private readonly discovery: DiscoveryService) {}

  of(call: MethodCall): Scheduled | undefined {
    // The outermost function has the metadata when several wrappers are around a method.
    const outermost = (call.instance as Record<string | symbol, object | undefined>)[
      call.methodName
    ];
    let method: object | undefined;
    if (this.#isScheduled(call.method)) ({ method } = call);
    else if (outermost !== undefined && this.#isScheduled(outermost)) method = outermost;
    else return undefined;
    switch (Reflect.getMetadata(SCHEDULER_TYPE, method)) {
      case TYPES.cron:
        return { by: 'cron', tick: () => this.#tickOf(method) };
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

  /** All decorators of a method have been applied when it is called, so that it is looked at once. */
  #isScheduled(method: object): boolean {
    let is = this.#scheduled.get(method);
    if (is === undefined) {
      is = Reflect.hasMetadata(SCHEDULER_TYPE, method);
      this.#scheduled.set(method, is);
    }
    return is;
  }

  #tickOf(method: object): Tick | undefined {
    const options = Reflect.getMetadata(SCHEDULE_CRON_OPTIONS, method) as CronOptions;
    const job = this.#jobsOf(options).find((candidate) => this.#isFiring(candidate));
    // Its own schedule counts: it may have been changed since it was declared.
    return job && latestTick(job.cronTime, Date.now());
  }

  /** Several when subclasses inherit a scheduled method. One with a name may have been replaced under it. */
  #jobsOf(options: CronOptions): readonly CronJob[] {
    this.#registry ??= this.#find('SchedulerRegistry', 'getCronJobs');
    const registered = this.#registry?.getCronJobs() ?? new Map<string, CronJob>();
    if (options.name !== undefined) {
      const job = registered.get(options.name);
      return job === undefined ? [] : [job];
    }
    this.#orchestrator ??= this.#find('SchedulerOrchestrator', 'cronJobs');
    if (this.#orchestrator === undefined) {
      // Should its inside change one day: rather take a call by hand for a tick than every tick for a call by hand.
      return [...registered.values()].filter(
        ({ cronTime }) => cronTime.source === options.cronTime,
      );
    }
    return Object.values(this.#orchestrator.cronJobs).flatMap((declared) =>
      declared.options === options && declared.ref ? [declared.ref] : [],
    );
  }

  /**
   * Whether this call is the one its timer made: the first since it fired. Not whether its callback runs now: other
   * decorators may have waited for something in between. A later call is one by hand, and so is `fireOnTick()`.
   */
  #isFiring(job: CronJob): boolean {
    const fired = job.lastDate();
    if (fired === null || this.#answered.get(job) === fired) return false;
    this.#answered.set(job, fired);
    return true;
  }

  /** By name: the application may have another copy of @nestjs/schedule than we could import, or none. */
  #find<T>(name: string, member: string): T | undefined {
    return this.discovery
      .getProviders()
      .find((provider) => provider.name === name && provider.instance?.[member])?.instance as
      T | undefined;
  }
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
