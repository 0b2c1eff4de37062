import { randomUUID } from 'node:crypto';
import { LeaseDoneException } from '../exceptions/lease-done.exception.js';
import { LeaseHeldException } from '../exceptions/lease-held.exception.js';
import { LeaseUnavailableException } from '../exceptions/lease-unavailable.exception.js';
import { NO_TELLING, ONCE_ON_REENTRY, SHUTTING_DOWN, SLOW_GRANT } from '../lease.messages.js';
import type { LeaseOptions } from '../lease.options.js';
import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
} from '../stores/lease-store.js';
import { Agenda } from './agenda.js';
import { systemClock, type Clock } from './clock.js';
import { parseDuration, type Duration } from './duration.js';
import { LeaseEvents, type ReleaseOutcome } from './events.js';
import { Holding, type HoldingKeeper } from './holding.js';
import { toElectionTarget, toTargets, type Target } from './key.js';
import { LeaseScope } from './lease-scope.js';
import { Lease, type LeaseKeeper } from './lease.js';
import { NoAnswerError, withPatience } from './patience.js';
import { Renewer } from './renewer.js';
import { resolveOptions, type ResolvedOptions } from './resolve-options.js';
import { Trust } from './trust.js';
import { WaitQueue } from './wait-queue.js';

export interface LeaseEngineOptions {
  readonly store: LeaseStore;
  readonly namespace: string;
  readonly instance: string;
  readonly ttl: number;
  readonly wait: number;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly token?: () => string;
}

/** One try to get one key, over as many requests as it takes: all of them carry the same token (rule 2). */
interface Attempt {
  readonly key: string;
  readonly qualified: string;
  readonly token: string;
  readonly options: ResolvedOptions;
  /** A request went out whose answer never came: the store may have granted it. */
  inDoubt: boolean;
  /** Nobody waits any more: what is granted now is given back. */
  over: boolean;
  /** What came of it. */
  holding: Holding | undefined;
}

export type KeyRefusal = Refusal & { readonly key: string };

/** No answer is waited for longer than this, however long the ttl. */
const PATIENCE_AT_MOST = 5_000;
const patienceFor = (ttl: number): number => Math.min(ttl / 3, PATIENCE_AT_MOST);

const RELEASE_TRIES = 2;

/** What leases mean, on any store and any clock. Knows nothing of Nest but its exceptions. */
export class LeaseEngine {
  readonly events: LeaseEvents;
  readonly scope = new LeaseScope();
  readonly agenda: Agenda;

  readonly #store: LeaseStore;
  readonly #namespace: string;
  readonly #instance: string;
  readonly #defaults: { readonly ttl: number; readonly wait: number };
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #token: () => string;
  readonly #renewer: Renewer;
  readonly #queues = new Map<string, WaitQueue>();
  readonly #leases = new Set<Lease>();
  readonly #working = new Set<Lease>();
  readonly #background = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #onWorkEnded = new Set<() => void>();

  constructor(options: LeaseEngineOptions) {
    this.#store = options.store;
    this.#namespace = options.namespace;
    this.#instance = options.instance;
    this.#defaults = { ttl: options.ttl, wait: options.wait };
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#token = options.token ?? randomUUID;
    this.agenda = new Agenda(this.#clock);
    this.events = new LeaseEvents(options.instance, () => this.#clock.wall());
    this.#renewer = new Renewer(this.#store, this.agenda, this.#random, this.events);
    // Defaults that do not fit the store are told at start, not at the first claim.
    resolveOptions(undefined, this.#defaults, this.#store);
  }

  get store(): LeaseStore {
    return this.#store;
  }

  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Handles that were given out and not given back. */
  get leases(): ReadonlySet<Lease> {
    return this.#leases;
  }

  /** Keys that somebody here waits for. For tests: a wait given up leaves nothing behind (rule 10). */
  get awaited(): number {
    return this.#queues.size;
  }

  resolve(options: LeaseOptions | undefined): ResolvedOptions {
    return resolveOptions(options, this.#defaults, this.#store);
  }

  async tryAcquire(key: string | readonly string[], options?: LeaseOptions): Promise<Lease | null> {
    const resolved = this.resolve({ ...options, wait: options?.wait ?? 0 });
    const answer = await this.#obtain(toTargets(this.#namespace, key), resolved);
    if (answer instanceof Lease) return answer;
    if (answer.reason === 'unavailable') throw this.#exception(answer, resolved);
    return null;
  }

  async acquire(key: string | readonly string[], options?: LeaseOptions): Promise<Lease> {
    const resolved = this.resolve(options);
    const answer = await this.#obtain(toTargets(this.#namespace, key), resolved);
    if (answer instanceof Lease) return answer;
    throw this.#exception(answer, resolved);
  }

  /** The leadership of a group, or why not. */
  campaign(group: string, options: LeaseOptions): Promise<Lease | KeyRefusal> {
    return this.#obtain([toElectionTarget(this.#namespace, group)], this.resolve(options));
  }

  /** Another handle on what a live lease holds: the lease is given back when the last of them is. */
  enter(lease: Lease): Lease {
    lease.assertHeld();
    for (const holding of lease.holdings) holding.uses++;
    return this.#handle(lease.holdings);
  }

  inspect(key: string): Promise<LeaseRecord | null> {
    const [target] = toTargets(this.#namespace, key);
    return this.#store
      .inspect(target!.qualified)
      .then((record) => record && { ...record, key })
      .catch((error: unknown) => {
        throw new LeaseUnavailableException(key, this.#store.name, error);
      });
  }

  async run<T>(
    key: string | readonly string[],
    work: (lease: Lease) => T | Promise<T>,
    options?: LeaseOptions,
  ): Promise<T> {
    const lease = await this.acquire(key, options);
    return this.runIn(lease, () => work(lease));
  }

  /** Runs `work` inside a lease and gives the lease back, whatever happens (rules 7 and 13). */
  async runIn<T>(lease: Lease, work: () => T | Promise<T>): Promise<T> {
    this.#working.add(lease);
    try {
      const result = await this.scope.run(lease, work);
      if (!lease.isReleased) {
        lease.assertHeld();
        for (const holding of lease.holdings) holding.succeeded ||= holding.uses === 1;
      }
      return result;
    } finally {
      await lease.release();
      this.#working.delete(lease);
      for (const look of this.#onWorkEnded) look();
    }
  }

  /** Waits until the leased work that is in flight now has ended, at most for `ms`; says whether it has. */
  async idle(ms: number): Promise<boolean> {
    const inFlight = [...this.#working];
    const isOver = (): boolean => inFlight.every((lease) => !this.#working.has(lease));
    if (isOver()) return true;
    await new Promise<void>((resolve) => {
      const limit = this.agenda.after(ms, () => end());
      const look = (): void => {
        if (isOver()) end();
      };
      const end = (): void => {
        this.agenda.cancel(limit);
        this.#onWorkEnded.delete(look);
        resolve();
      };
      this.#onWorkEnded.add(look);
    });
    return isOver();
  }

  /**
   * Stop, then release (rule 11): lets work in flight finish for `grace` while its leases are renewed, then
   * aborts their signals, gives them `stopGrace` to stop, and gives back what has. What has not is left to its
   * ttl: to release it would invite a second owner beside it. Returns the keys that were left so.
   */
  async close(grace: number, stopGrace: number): Promise<readonly string[]> {
    this.#closing.abort(new Error(SHUTTING_DOWN()));
    await this.idle(grace);
    for (const lease of this.#leases) {
      for (const holding of lease.holdings) holding.abort(this.#closing.signal.reason);
    }
    await this.idle(stopGrace);
    const left = [...this.#working];
    for (const lease of left) for (const holding of lease.holdings) this.agenda.cancel(holding);
    await Promise.all(
      [...this.#leases].filter((lease) => !left.includes(lease)).map((lease) => lease.release()),
    );
    await Promise.all(this.#background);
    this.agenda.stop();
    this.events.complete();
    return left.flatMap((lease) => lease.keys);
  }

  readonly #holdingKeeper: HoldingKeeper = {
    due: (holding) => this.#renewer.due(holding),
    tell: (holding, reason) => {
      this.agenda.cancel(holding);
      const { key, fence } = holding;
      return this.events.emitLost({
        type: 'lost',
        key,
        fence,
        reason,
        heldMs: this.#heldMs(holding),
      });
    },
    lost: (holding) => {
      if (holding.lossReason !== 'taken') this.#giveBack(holding.hold);
      this.#hint(holding.hold.key);
    },
  };

  readonly #leaseKeeper: LeaseKeeper = {
    release: async (lease) => {
      const outcomes = await Promise.all(lease.holdings.map((holding) => this.#letGo(holding)));
      this.#leases.delete(lease);
      if (outcomes.includes('lost')) return 'lost';
      return outcomes.includes('unknown') ? 'unknown' : 'released';
    },
    renew: async (lease, ttl) => {
      await Promise.all(lease.holdings.map((holding) => this.#renewNow(holding, ttl)));
    },
  };

  /** All of the keys, in their order, or none of them. */
  async #obtain(targets: readonly Target[], options: ResolvedOptions): Promise<Lease | KeyRefusal> {
    const startedAt = this.#clock.now();
    options.signal?.throwIfAborted();
    const taken: Holding[] = [];
    try {
      for (const target of targets) {
        const answer =
          this.#enterAgain(target, options) ?? (await this.#take(target, options, startedAt));
        if (!(answer instanceof Holding)) {
          await this.#backOut(taken);
          return this.#refused({ ...answer, key: target.key });
        }
        taken.push(answer);
        // Waiting for one key may have outlasted another.
        for (const holding of taken) holding.assertHeld();
      }
    } catch (error) {
      await this.#backOut(taken);
      throw error;
    }
    return this.#handle(taken);
  }

  #handle(holdings: readonly Holding[]): Lease {
    const lease = new Lease(this.#leaseKeeper, holdings);
    this.#leases.add(lease);
    return lease;
  }

  async #backOut(taken: readonly Holding[]): Promise<void> {
    await Promise.all(taken.map((holding) => this.#letGo(holding)));
  }

  #refused(refusal: KeyRefusal): KeyRefusal {
    const { key, reason, retryAfterMs, cause } = refusal;
    this.events.emit({
      type: 'refused',
      key,
      reason,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(cause === undefined ? {} : { error: cause }),
    });
    return refusal;
  }

  #exception(refusal: KeyRefusal, options: ResolvedOptions): Error {
    const { key, reason } = refusal;
    if (reason === 'held') return new LeaseHeldException(key, refusal.retryAfterMs);
    if (reason === 'done') return new LeaseDoneException(key, options.once!);
    return new LeaseUnavailableException(key, this.#store.name, refusal.cause);
  }

  /** A key that this async context holds already is entered again, under the same fence. */
  #enterAgain({ key, qualified }: Target, options: ResolvedOptions): Holding | undefined {
    const holding = this.scope.find(qualified);
    if (holding === undefined) return undefined;
    if (holding.state === 'releasing' || holding.state === 'released') return undefined;
    // rule 4: work whose lease was lost does not go on under a new one as if nothing had happened
    holding.assertHeld();
    if (options.once !== undefined && options.once !== holding.options.once) {
      throw new TypeError(ONCE_ON_REENTRY(key, options.once));
    }
    holding.uses++;
    return holding;
  }

  async #take(
    { key, qualified }: Target,
    options: ResolvedOptions,
    startedAt: number,
  ): Promise<Holding | Refusal> {
    if (this.isClosing) return this.#unavailable(this.#closing.signal.reason);
    const attempt: Attempt = {
      key,
      qualified,
      token: this.#token(),
      options,
      inDoubt: false,
      over: false,
      holding: undefined,
    };
    const answer = await (options.wait > 0
      ? this.#waitFor(attempt, startedAt)
      : this.#askOnce(attempt));
    if (answer instanceof Holding) {
      const { fence, ttl } = answer;
      const waitedMs = this.#clock.now() - startedAt;
      this.events.emit({ type: 'acquired', key, fence, ttl, waitedMs });
    }
    return answer;
  }

  async #askOnce(attempt: Attempt): Promise<Holding | Refusal> {
    // Those who wait here were first, and were told that it is held.
    const busyFor = this.#queues.get(attempt.qualified)?.busyFor ?? 0;
    if (busyFor > 0) return { granted: false, reason: 'held', retryAfterMs: busyFor };
    try {
      return await this.#claim(attempt, patienceFor(attempt.options.ttl));
    } finally {
      this.#giveUp(attempt);
    }
  }

  async #waitFor(attempt: Attempt, startedAt: number): Promise<Holding | Refusal> {
    const { options, qualified } = attempt;
    const deadline = startedAt + options.wait;
    const queue = this.#queue(qualified);
    const place = queue.enter();
    const end = this.#endOfWaiting(options, deadline, () => place.isHead && queue.nudge());
    let last: Refusal | undefined;
    try {
      await Promise.race([place.turn, end.reached]);
      for (;;) {
        options.signal?.throwIfAborted();
        if (this.isClosing) return this.#unavailable(this.#closing.signal.reason);
        const here = queue.heldHere;
        const isHere = here !== undefined && (here.isHeld || here.state === 'releasing');
        if (isHere) last = { granted: false, reason: 'held', retryAfterMs: here.remaining };
        const left = deadline - this.#clock.now();
        if (left <= 0 && last !== undefined) return last;
        if (!place.isHead) return queue.lastRefusal ?? { granted: false, reason: 'held' };
        const seen = queue.hints;
        if (isHere && options.permits === 1) {
          // Its end is a hint; the sleep is only the net.
          await queue.sleep(seen, Math.min(Math.max(here.remaining, 10), left));
          continue;
        }
        place.asked++;
        // The first request has its full time even when `wait` is shorter: else a short wait on a slow network
        // would never get an answer that no wait at all gets.
        const patience = patienceFor(options.ttl);
        const claim = this.#claim(attempt, place.asked === 1 ? patience : Math.min(patience, left));
        const answer = await Promise.race([claim, end.aborted]);
        if (answer === undefined) continue;
        if (answer instanceof Holding) {
          if (options.permits === 1) queue.heldHere = answer;
          return answer;
        }
        if (answer.reason === 'done') return answer;
        // What it was told before outweighs that the last request, cut short, went unanswered.
        const cutShort = answer.cause instanceof NoAnswerError && this.#clock.now() >= deadline;
        if (last === undefined || !cutShort) last = answer;
        queue.refused(last);
        const rest = Math.min(
          queue.pause(place, answer.retryAfterMs),
          deadline - this.#clock.now(),
        );
        if (rest > 0) await queue.sleep(seen, rest);
      }
    } finally {
      end.forget();
      queue.leave(place);
      this.#giveUp(attempt);
    }
  }

  /** `reached` when the wait is over for any reason, `aborted` when the caller or a shutdown ended it. */
  #endOfWaiting(
    { signal }: ResolvedOptions,
    deadline: number,
    nudge: () => void,
  ): { reached: Promise<void>; aborted: Promise<undefined>; forget: () => void } {
    let reach!: () => void;
    let abort!: (nothing: undefined) => void;
    const reached = new Promise<void>((resolve) => (reach = resolve));
    const aborted = new Promise<undefined>((resolve) => (abort = resolve));
    const onAbort = (): void => {
      reach();
      abort(undefined);
      nudge();
    };
    const closing = this.#closing.signal;
    const limit =
      deadline === Infinity ? undefined : this.agenda.after(deadline - this.#clock.now(), reach);
    signal?.addEventListener('abort', onAbort, { once: true });
    closing.addEventListener('abort', onAbort, { once: true });
    return {
      reached,
      aborted,
      forget: () => {
        if (limit !== undefined) this.agenda.cancel(limit);
        signal?.removeEventListener('abort', onAbort);
        closing.removeEventListener('abort', onAbort);
      },
    };
  }

  /** One request to the store. Never rejects: not to know is an answer too (rule 9). */
  async #claim(attempt: Attempt, patience: number): Promise<Holding | Refusal> {
    const { qualified, token, options } = attempt;
    const { ttl, permits, once } = options;
    const hold: Hold = { key: qualified, token, ttl, permits };
    const claim: Claim = {
      ...hold,
      instance: this.#instance,
      patience,
      ...(once === undefined ? {} : { once }),
    };
    // rule 3: both clocks are read before the request leaves
    const mono = this.#clock.now();
    const wall = this.#clock.wall();
    let answer: Grant | Refusal;
    try {
      answer = await withPatience(
        this.agenda,
        patience,
        () => this.#store.acquire(claim),
        () => this.#late(attempt, hold),
      );
    } catch (error) {
      attempt.inDoubt = true;
      this.#late(attempt, hold);
      return this.#unavailable(error);
    }
    if (answer?.granted === true && Number.isSafeInteger(answer.fence) && answer.fence > 0) {
      const trust = new Trust(this.#clock, mono, wall, ttl);
      if (!attempt.over && trust.remaining > 0)
        return this.#hold(attempt, hold, answer, trust, mono);
      attempt.inDoubt = true;
      this.#late(attempt, hold);
      return this.#unavailable(new Error(SLOW_GRANT(ttl)));
    }
    if (isRefusal(answer)) return answer;
    attempt.inDoubt = true;
    return this.#unavailable(new Error(NO_TELLING(this.#store.name, answer)));
  }

  #hold(attempt: Attempt, hold: Hold, grant: Grant, trust: Trust, mono: number): Holding {
    attempt.inDoubt = false;
    const { key, options } = attempt;
    const holding = new Holding({
      keeper: this.#holdingKeeper,
      key,
      hold,
      fence: grant.fence,
      trust,
      grantedAt: this.#clock.now(),
      maxHoldAt: mono + options.maxHold,
      options,
    });
    attempt.holding = holding;
    this.#renewer.plan(holding, mono);
    return holding;
  }

  #unavailable(cause: unknown): Refusal {
    return { granted: false, reason: 'unavailable', cause };
  }

  #giveUp(attempt: Attempt): void {
    attempt.over = true;
    if (!attempt.inDoubt) return;
    const { qualified: key, token, options } = attempt;
    this.#giveBack({ key, token, ttl: options.ttl, permits: options.permits });
  }

  /** An answer came after its time: unless the attempt goes on or has its lease, it is given back (rule 2). */
  #late(attempt: Attempt, hold: Hold): void {
    if (attempt.over && attempt.holding?.state !== 'held') this.#giveBack(hold);
  }

  /** Best effort, in the background: the ttl does it if this does not. */
  #giveBack(hold: Hold): void {
    const given = withPatience(this.agenda, patienceFor(hold.ttl), () =>
      this.#store.release(hold, {}),
    )
      .then(
        (freed) => freed && this.#hint(hold.key),
        () => {},
      )
      .finally(() => this.#background.delete(given));
    this.#background.add(given);
  }

  async #letGo(holding: Holding): Promise<ReleaseOutcome> {
    if (--holding.uses > 0) return holding.isHeld ? 'released' : 'lost';
    if (!holding.beginRelease()) return 'lost';
    this.agenda.cancel(holding);
    // A renewal that overtook its release would be answered for a key that is not ours any more (rule 7).
    await holding.renewing;
    const outcome = await this.#release(holding);
    holding.endRelease();
    this.#hint(holding.hold.key);
    const { key, fence } = holding;
    this.events.emit({ type: 'released', key, fence, heldMs: this.#heldMs(holding), outcome });
    return outcome;
  }

  async #release(holding: Holding): Promise<ReleaseOutcome> {
    const { once, remember, minHold } = holding.options;
    for (let tries = 1; tries <= RELEASE_TRIES; tries++) {
      const keepFor = minHold - this.#heldMs(holding);
      const how: ReleaseHow = {
        ...(keepFor > 0 ? { keepFor } : {}),
        ...(once !== undefined && holding.succeeded ? { done: { once, remember } } : {}),
      };
      try {
        const freed = await withPatience(this.agenda, patienceFor(holding.ttl), () =>
          this.#store.release(holding.hold, how),
        );
        if (freed) return 'released';
        // After a try without an answer, "not yours" may only mean that the first one worked.
        return tries === 1 ? 'lost' : 'unknown';
      } catch {
        // Tried once more, then left to the ttl.
      }
    }
    return 'unknown';
  }

  async #renewNow(holding: Holding, ttl: Duration | undefined): Promise<void> {
    if (ttl !== undefined) {
      const { minTtl: min, maxTtl: max } = this.#store.limits;
      holding.hold = { ...holding.hold, ttl: parseDuration(ttl, 'ttl', { min, max }) };
    }
    const outcome = await this.#renewer.now(holding);
    if (outcome === 'gone') throw holding.lostException();
    if (outcome === 'unknown') throw new LeaseUnavailableException(holding.key, this.#store.name);
  }

  #heldMs(holding: Holding): number {
    return this.#clock.now() - holding.grantedAt;
  }

  #queue(qualified: string): WaitQueue {
    let queue = this.#queues.get(qualified);
    if (queue === undefined) {
      queue = new WaitQueue(qualified, this.#store, this.agenda, this.#random, () =>
        this.#queues.delete(qualified),
      );
      this.#queues.set(qualified, queue);
    }
    return queue;
  }

  #hint(qualified: string): void {
    this.#queues.get(qualified)?.hint();
  }
}

function isRefusal(answer: Grant | Refusal | undefined): answer is Refusal {
  return (
    answer?.granted === false &&
    (answer.reason === 'held' || answer.reason === 'done' || answer.reason === 'unavailable')
  );
}
