import { HttpException, Injectable, Logger } from '@nestjs/common';
import { ElectionService } from '../election/election.service.js';
import { LeaseDoneException } from '../exceptions/lease-done.exception.js';
import { LeaseHeldException } from '../exceptions/lease-held.exception.js';
import { LeaseUnavailableException } from '../exceptions/lease-unavailable.exception.js';
import { NotLeaderException } from '../exceptions/not-leader.exception.js';
import {
  KEY_FUNCTION_THREW,
  RAN_WITHOUT_LEASE,
  SKIPPED,
  SKIPPED_CLOSING,
} from '../lease.messages.js';
import type { LeaseOptions } from '../lease.options.js';
import { LeaseEngine } from '../lease/lease-engine.js';
import type { Lease } from '../lease/lease.js';
import { GuardedCalls, type GuardedCall } from './guarded-calls.js';
import { holdStream, keepStream } from './held-result.js';
import type { LeaderOnlyPlan } from './lease.metadata.js';
import { assertMethodKey } from './method-key.js';
import { ScheduledJobs, type Scheduled } from './scheduled-jobs.js';
import type { WithLeasePlan } from './with-lease.decorator.js';
import type { MethodCall, Work } from './wrap-method.js';

/** How far apart clocks of one fleet may be without a tick being run again by the one that is behind. */
const SKEW = 120_000;
const REMEMBER_AT_MOST = 86_400_000;
/** Timers and networks are not exact: an interval's own next turn must find the key free. */
const SLACK_AT_MOST = 1_000;

/** What decorated methods do when they are called. One per application. */
@Injectable()
export class LeasedMethods {
  readonly #logger = new Logger('Lease');
  #isClosed = false;

  constructor(
    private readonly engine: LeaseEngine,
    private readonly elections: ElectionService,
    private readonly jobs: ScheduledJobs,
    private readonly guarded: GuardedCalls,
  ) {}

  /** From now on scheduled work is skipped: the application is going down. */
  close(): void {
    this.#isClosed = true;
  }

  async withLease(plan: WithLeasePlan, call: MethodCall, work: Work): Promise<unknown> {
    const scheduled = this.jobs.of(call);
    if (scheduled && this.#isClosed) return this.#skip(call, SKIPPED_CLOSING());
    const key = keyOf(plan, call);
    const options = scheduled ? { ...plan.lease, ...onceOptions(plan, scheduled) } : plan.lease;
    let lease: Lease;
    try {
      lease = await this.engine.acquire(key, options);
    } catch (error) {
      if (error instanceof LeaseHeldException || error instanceof LeaseDoneException) {
        const onHeld = plan.onHeld ?? (scheduled ? 'skip' : 'throw');
        if (onHeld === 'skip') return this.#skip(call, error.message);
      } else if (scheduled && this.engine.isClosing) {
        return this.#skip(call, SKIPPED_CLOSING());
      } else if (error instanceof LeaseUnavailableException && !this.engine.isClosing) {
        if (plan.onUnavailable === 'skip') return this.#skip(call, error.message);
        if (plan.onUnavailable === 'run') {
          this.#logger.warn(RAN_WITHOUT_LEASE(call.label));
          return await holdStream((run) => run(undefined), work);
        }
      }
      throw error;
    }
    // The gate may have closed while it waited.
    if (scheduled && this.#isClosed) {
      await lease.release();
      return this.#skip(call, SKIPPED_CLOSING());
    }
    if (plan.fenced === undefined) {
      return await this.engine.runIn(lease, () => work(lease), keepStream);
    }
    let guard: GuardedCall | undefined;
    const run = (): unknown => {
      // Inside: a gate that cannot be used leaves no lease behind.
      guard = this.guarded.begin(plan.fenced!, lease, call.label);
      return work(lease, guard.handle);
    };
    const result = await this.engine.runIn(lease, run, keepStream);
    return guard!.ended(result);
  }

  async leaderOnly(plan: LeaderOnlyPlan, call: MethodCall, work: Work): Promise<unknown> {
    const scheduled = this.jobs.of(call);
    if (scheduled && this.#isClosed) return this.#skip(call, SKIPPED_CLOSING());
    const leadership = this.elections.leadership(plan.group);
    if (leadership.isLeader) {
      const guardedWork = this.#guardedWork(plan, call, work);
      return await holdStream((run) => leadership.run(run), guardedWork);
    }
    const notLeader = new NotLeaderException(leadership.group);
    const onNotLeader = plan.onNotLeader ?? (scheduled ? 'skip' : 'throw');
    if (onNotLeader === 'skip') return this.#skip(call, notLeader.message);
    throw notLeader;
  }

  #guardedWork({ fenced }: LeaderOnlyPlan, call: MethodCall, work: Work): Work {
    if (fenced === undefined) return work;
    return async (lease) => {
      const guard = this.guarded.begin(fenced, lease!, call.label);
      return guard.ended(await work(lease, guard.handle));
    };
  }

  #skip(call: MethodCall, why: string): undefined {
    this.#logger.debug(SKIPPED(call.label, why));
  }
}

function keyOf({ key }: WithLeasePlan, call: MethodCall): string | readonly string[] {
  if (key === undefined) return call.label;
  if (typeof key !== 'function') return key;
  let made: unknown;
  try {
    made = key.apply(call.instance, [...call.args]);
  } catch (error) {
    // A deliberate answer to the client is none of ours.
    if (error instanceof HttpException) throw error;
    throw new Error(KEY_FUNCTION_THREW(call.label), { cause: error });
  }
  assertMethodKey(made, call.label);
  return made;
}

/** What being scheduled adds to the options. */
function onceOptions(plan: WithLeasePlan, scheduled: Scheduled): LeaseOptions {
  const { once, minHold, permits = 1 } = plan.lease;
  if (!plan.oncePerTick || permits > 1) return {};
  if (scheduled.by === 'cron' && once === undefined) {
    const tick = scheduled.tick();
    if (tick === undefined) return {};
    const { at, period } = tick;
    return {
      once: `tick ${at.toISOString()}`,
      // A tick is named by the clock of who fires, so it is never asked for later than that and the skew.
      remember: plan.lease.remember ?? Math.min(period + SKEW, REMEMBER_AT_MOST),
    };
  }
  if (scheduled.by === 'interval' && minHold === undefined) {
    return { minHold: scheduled.every - Math.min(scheduled.every / 10, SLACK_AT_MOST) };
  }
  return {};
}
