import { randomUUID } from 'node:crypto';
import { LeaseDoneException } from '../exceptions/lease-done.exception.js';
import { LeaseHeldException } from '../exceptions/lease-held.exception.js';
import { LeaseLostException } from '../exceptions/lease-lost.exception.js';
import { LeaseUnavailableException } from '../exceptions/lease-unavailable.exception.js';
import { ONCE_ON_REENTRY, PERMITS_ON_REENTRY, SHUTTING_DOWN } from '../lease.messages.js';
import type { LeaseOptions } from '../lease.options.js';
import type { LeaseRecord, LeaseStore, Refusal } from '../stores/lease-store.js';
import { Agenda } from './agenda.js';
import { Claimant, unavailable, type Attempt, type Granted } from './claimant.js';
import { systemClock, type Clock } from './clock.js';
import { Contender } from './contender.js';
import { parseDuration, type Duration } from './duration.js';
import { LeaseEvents, type ReleaseOutcome } from './events.js';
import { Holding, type HoldingKeeper } from './holding.js';
import { toElectionTarget, toTargets, type Target } from './key.js';
import { LeaseScope } from './lease-scope.js';
import { Lease, type LeaseKeeper } from './lease.js';
import { PATIENCE_AT_MOST, withPatience } from './patience.js';
import { Releaser } from './releaser.js';
import { RenewalDeputy, type RenewInThread } from './renewal-deputy.js';
import { RenewalEvents } from './renewal-events.js';
import { Renewer } from './renewer.js';
import { resolveOptions, type ResolvedOptions } from './resolve-options.js';
import { Roster } from './roster.js';
import { UnderWay } from './under-way.js';
import { WorkInFlight, type Work } from './work-in-flight.js';

export interface LeaseEngineOptions {
  readonly store: LeaseStore;
  readonly namespace: string;
  readonly instance: string;
  readonly ttl: number;
  readonly wait: number;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly token?: () => string;
  /** Renewals from a thread of their own. */
  readonly renewInThread?: RenewInThread | undefined;
}

/** A result that goes on: what the caller gets of it, and when it is over. */
export interface Kept<T> {
  readonly result: T;
  readonly over: Promise<void>;
}

export type Keep<T> = (result: T, lease: Lease) => Kept<T> | undefined;

export type KeyRefusal = Refusal & { readonly key: string };

/** What leases mean, on any store and any clock. Knows nothing of Nest but its exceptions. */
export class LeaseEngine {
  readonly events: LeaseEvents;
  readonly scope = new LeaseScope();
  readonly agenda: Agenda;

  readonly #store: LeaseStore;
  readonly #namespace: string;
  readonly #defaults: { readonly ttl: number; readonly wait: number };
  readonly #clock: Clock;
  readonly #renewer: Renewer<Holding>;
  readonly #deputy: RenewalDeputy | undefined;
  readonly #claimant: Claimant;
  readonly #contender: Contender;
  readonly #releaser: Releaser;
  readonly #work: WorkInFlight;
  readonly #underWay = new UnderWay();
  readonly #leases = new Roster<Lease>();
  /** Taken by hand, and waited for by a shutdown. */
  readonly #byHand = new Map<Lease, Work>();
  /** What is resolved once and for all: for nobody's options, and for those that can never change. */
  readonly #byDefault: ResolvedOptions;
  readonly #resolved = new WeakMap<LeaseOptions, ResolvedOptions>();
  #closing: { readonly reason: Error } | undefined;
  readonly #stopWatchingLoss: (() => void) | undefined;

  constructor(options: LeaseEngineOptions) {
    const { store, instance, random = Math.random, token = randomUUID } = options;
    this.#store = store;
    this.#namespace = options.namespace;
    this.#defaults = { ttl: options.ttl, wait: options.wait };
    this.#clock = options.clock ?? systemClock;
    this.agenda = new Agenda(this.#clock);
    this.#work = new WorkInFlight(this.agenda);
    this.events = new LeaseEvents(
      instance,
      () => this.#clock.wall(),
      (tell) => this.scope.outside(tell),
    );
    this.scope.events = this.events;
    const onFreed = (qualified: string): void => this.#contender.hint(qualified);
    const witness = new RenewalEvents(this.events);
    this.#renewer = new Renewer<Holding>(store, this.agenda, random, witness);
    this.#releaser = new Releaser({
      store,
      agenda: this.agenda,
      events: this.events,
      underWay: this.#underWay,
      onFreed,
      handOver: (hold, told) => this.#contender.handOver(hold, told),
    });
    this.#claimant = new Claimant({
      store,
      agenda: this.agenda,
      instance,
      token,
      underWay: this.#underWay,
      hold: (attempt, granted) => this.#hold(attempt, granted),
      onFreed,
    });
    this.#contender = new Contender(store, this.agenda, random, this.#claimant, (qualified) =>
      this.#releaser.releasing(qualified),
    );
    this.#stopWatchingLoss = store.watchLoss?.((gone) => this.#gone(gone));
    // Defaults that do not fit the store are told at start, not at the first claim.
    this.#byDefault = resolveOptions(undefined, this.#defaults, store);
    if (options.renewInThread !== undefined) {
      const { agenda, events } = this;
      const parts = { store, agenda, renewer: this.#renewer, witness, events };
      this.#deputy = new RenewalDeputy(options.renewInThread, parts);
    }
  }

  get store(): LeaseStore {
    return this.#store;
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** Handles that were given out and not given back. */
  get leases(): Iterable<Lease> & { readonly size: number } {
    return this.#leases;
  }

  /** Keys that somebody here waits for. For tests: a wait given up leaves nothing behind (rule 10). */
  get awaited(): number {
    return this.#contender.awaited;
  }

  resolve(options: LeaseOptions | undefined): ResolvedOptions {
    if (options === undefined) return this.#byDefault;
    if (!Object.isFrozen(options)) return resolveOptions(options, this.#defaults, this.#store);
    let resolved = this.#resolved.get(options);
    if (resolved === undefined) {
      resolved = resolveOptions(options, this.#defaults, this.#store);
      this.#resolved.set(options, resolved);
    }
    return resolved;
  }

  tryAcquire(key: string | readonly string[], options?: LeaseOptions): Promise<Lease | null> {
    return new Promise((resolve, reject) => {
      const asked = this.resolve(options);
      const resolved = options?.wait === undefined ? { ...asked, wait: 0 } : asked;
      const settle = (answer: Lease | KeyRefusal): void => {
        if (answer instanceof Lease) resolve(answer);
        else if (answer.reason === 'unavailable') reject(this.#exception(answer, resolved));
        else resolve(null);
      };
      this.#obtain(toTargets(this.#namespace, key), resolved, settle, reject);
    });
  }

  acquire(key: string | readonly string[], options?: LeaseOptions): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const resolved = this.resolve(options);
      const settle = (answer: Lease | KeyRefusal): void => {
        if (answer instanceof Lease) resolve(answer);
        else reject(this.#exception(answer, resolved));
      };
      this.#obtain(toTargets(this.#namespace, key), resolved, settle, reject);
    });
  }

  /** The leadership of a group, or why not. */
  campaign(group: string, options: LeaseOptions): Promise<Lease | KeyRefusal> {
    return new Promise((resolve, reject) => {
      const target = toElectionTarget(this.#namespace, group);
      this.#obtain([target], this.resolve(options), resolve, reject);
    });
  }

  /** Another handle on what a live lease holds: the lease is given back when the last of them is. */
  enter(lease: Lease): Lease {
    lease.assertHeld();
    for (const holding of lease.holdings) holding.uses++;
    return this.#handle(lease.holdings);
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    const [target] = toTargets(this.#namespace, key);
    try {
      const record = await withPatience(this.agenda, PATIENCE_AT_MOST, () =>
        this.#store.inspect(target!.qualified),
      );
      return record && { ...record, key };
    } catch (error) {
      throw new LeaseUnavailableException(key, this.#store.name, error);
    }
  }

  async run<T>(
    key: string | readonly string[],
    work: (lease: Lease) => T | Promise<T>,
    options?: LeaseOptions,
  ): Promise<T> {
    const lease = await this.acquire(key, options);
    return await this.runIn(lease, () => work(lease));
  }

  /**
   * Runs `work` inside a lease and gives the lease back, whatever happens (rules 7 and 13). The caller goes on at once,
   * and the release follows before the event loop turns: its answer changes nothing for the work, which was trusted to
   * its end, and reaches the events. It is waited for when it says more than that, or could not be sent at once.
   *
   * @param keep - when a result goes on after it is there, as a stream does: what the caller gets, and until when the
   * lease is held for it
   */
  async runIn<T>(lease: Lease, work: () => T | Promise<T>, keep?: Keep<T>): Promise<T> {
    const inFlight = this.#work.begin(lease);
    let kept: Kept<T> | undefined;
    try {
      // Time may have passed since it was granted (rule 4).
      lease.assertHeld();
      const result = await this.scope.run(lease, work);
      if (keep !== undefined && typeof result === 'object' && result !== null) {
        kept = this.scope.run(lease, () => keep(result, lease));
      }
      if (kept !== undefined) return kept.result;
      const released = this.#succeeded(lease);
      if (released !== undefined) await released;
      return result;
    } catch (error) {
      const released = this.#giveBack(lease);
      if (released !== undefined) await released;
      throw error;
    } finally {
      if (kept === undefined) this.#work.end(inFlight);
      else void this.#runOn(inFlight, kept.over);
    }
  }

  /** Whoever called has the result by now and is told by the stream itself how it goes on. */
  async #runOn(inFlight: Work, over: Promise<void>): Promise<void> {
    const { lease } = inFlight;
    try {
      await over;
      await this.#succeeded(lease);
    } catch {
      await this.#giveBack(lease);
    } finally {
      this.#work.end(inFlight);
    }
  }

  /** The work came to its end: its result counts, unless the lease was lost on the way (rule 13). */
  #succeeded(lease: Lease): Promise<unknown> | undefined {
    const isByHand = lease.isReleased;
    if (!isByHand) lease.assertHeld();
    for (const holding of lease.holdings) {
      // Released by hand after it was lost: lost on the way all the same.
      if (holding.state === 'lost') throw holding.lostException();
      if (holding.owner === lease) holding.succeeded = true;
    }
    const releasing = this.#giveBack(lease);
    return releasing && (isByHand ? releasing : orLost(lease, releasing));
  }

  /** Sends the release; what comes of it, where that is waited for. */
  #giveBack(lease: Lease): Promise<ReleaseOutcome> | undefined {
    if (lease.holdings.some(waitsForRelease)) return lease.release();
    lease.giveBack();
    return undefined;
  }

  /** Waits until the leased work that is in flight now has ended, at most for `ms`; says whether it has. */
  idle(ms: number): Promise<boolean> {
    return this.#work.idle(ms);
  }

  /**
   * Stop, then release (rule 11): lets work in flight finish for `grace` while its leases are renewed, then
   * aborts their signals, gives them `stopGrace` to stop, and gives back what has. What has not is left to its
   * ttl: to release it would invite a second owner beside it. Returns the keys that were left so.
   *
   * Of a lease that was taken by hand it is not known what runs under it: whoever asked for its signal has the
   * same time to give it back; one whose signal nobody asked for is given back at once.
   */
  async close(grace: number, stopGrace: number): Promise<readonly string[]> {
    this.#closing ??= { reason: new Error(SHUTTING_DOWN()) };
    const { reason } = this.#closing;
    this.#contender.close(reason);
    await this.idle(grace);
    const working = this.#work.leases;
    for (const lease of this.#leases) {
      // On its way back: nothing runs under it any more.
      if (lease.isReleased) continue;
      if (!working.includes(lease) && lease.holdings.some(({ hasSignal }) => hasSignal)) {
        this.#byHand.set(lease, this.#work.begin(lease));
      }
      for (const holding of lease.holdings) holding.abort(reason);
    }
    await this.idle(stopGrace);
    const left = this.#work.leases.filter((lease) => !lease.isReleased);
    this.#renewer.stop();
    this.#deputy?.leaveAll();
    const leftHoldings = left.flatMap((lease) => lease.holdings);
    for (const holding of leftHoldings) this.agenda.cancel(holding);
    await Promise.all(
      [...this.#leases].filter((lease) => !left.includes(lease)).map((lease) => lease.release()),
    );
    // Claims in flight too: what they are granted by now is to be given back. Each is bounded by its patience.
    await this.#underWay.over();
    await Promise.all(leftHoldings.map((holding) => holding.renewing));
    if (this.#deputy !== undefined) await this.#deputy.stop();
    this.#stopWatchingLoss?.();
    this.agenda.stop();
    this.events.complete();
    return [...new Set(left.flatMap((lease) => lease.keys))];
  }

  readonly #holdingKeeper: HoldingKeeper = {
    due: (holding) => this.#renewer.due(holding),
    tell: (holding, reason) => {
      this.agenda.cancel(holding);
      const { key, fence, heldMs } = holding;
      return this.events.emitLost({ type: 'lost', key, fence, reason, heldMs });
    },
    outside: (tell) => this.scope.outside(tell),
    lost: (holding) => {
      const { owner } = holding;
      // Whoever never gives a lost lease back leaves nothing behind.
      if (owner?.holdings.every(({ state }) => state === 'lost')) this.#forget(owner);
      // What a thread found out the store here has not heard of.
      if (holding.lossReason !== 'taken' || this.#deputy !== undefined) {
        this.#claimant.giveBack(holding.hold);
      }
      this.#contender.hint(holding.hold.key);
    },
  };

  readonly #leaseKeeper: LeaseKeeper = {
    events: () => this.events,
    release: (lease, tell, isRelaxed) => {
      let left = lease.holdings.length;
      let worst: ReleaseOutcome = 'released';
      const ended = (outcome: ReleaseOutcome): void => {
        if (outcome === 'lost' || worst === 'released') worst = outcome;
        if (--left > 0) return;
        this.#forget(lease);
        tell(worst);
      };
      for (const holding of lease.holdings) this.#releaser.letGo(holding, ended, { isRelaxed });
    },
    renew: async (lease, ttl) => {
      await Promise.all(lease.holdings.map((holding) => this.#renewNow(holding, ttl)));
    },
  };

  /** The store found it gone without being asked (rule 6). */
  #gone(token: string): void {
    for (const lease of this.#leases) {
      for (const holding of lease.holdings) {
        if (holding.hold.token === token) holding.lose('taken');
      }
    }
  }

  #forget(lease: Lease): void {
    this.#leases.delete(lease);
    if (this.#byHand.size === 0) return;
    const inFlight = this.#byHand.get(lease);
    this.#byHand.delete(lease);
    if (inFlight !== undefined) this.#work.end(inFlight);
  }

  /** Counted until it has settled, so that a shutdown waits for what it still has to give back. */
  #obtain(
    targets: readonly Target[],
    options: ResolvedOptions,
    settle: (answer: Lease | KeyRefusal) => void,
    fail: (error: unknown) => void,
  ): void {
    const startedAt = this.#clock.now();
    options.signal?.throwIfAborted();
    const target = targets[0]!;
    const isSimple = targets.length === 1 && this.#closing === undefined;
    const entered = isSimple ? this.#enterAgain(target, options) : undefined;
    if (entered !== undefined) return settle(this.#handle([entered]));
    this.#underWay.begin();
    const failed = (error: unknown): void => {
      this.#underWay.end();
      fail(error);
    };
    const settled = (answer: Lease | KeyRefusal): void => {
      this.#underWay.end();
      settle(answer);
    };
    if (!isSimple) {
      this.#obtainAll(targets, options, startedAt).then(settled, failed);
      return;
    }
    const answered = (answer: Holding | Refusal): void => {
      if (!(answer instanceof Holding)) return settled(this.#refused(target.key, answer));
      this.#acquired(answer, startedAt);
      if (this.#closing === undefined) return settled(this.#handle([answer]));
      const { reason } = this.#closing;
      const refuse = (): void => settled(this.#refused(target.key, unavailable(reason)));
      this.#backOut([answer]).then(refuse, failed);
    };
    this.#seek(target, options, startedAt, answered, failed);
  }

  #seek(
    target: Target,
    options: ResolvedOptions,
    startedAt: number,
    found: (answer: Holding | Refusal) => void,
    failed: (reason: unknown) => void,
  ): void {
    const attempt = this.#claimant.attempt(target, options, startedAt);
    if (options.wait === 0) this.#contender.ask(attempt, found, failed);
    else this.#contender.waitFor(attempt, startedAt + options.wait, found, failed);
  }

  /** All of the keys, in their order, or none of them. */
  async #obtainAll(
    targets: readonly Target[],
    options: ResolvedOptions,
    startedAt: number,
  ): Promise<Lease | KeyRefusal> {
    const taken: Holding[] = [];
    try {
      for (const target of targets) {
        const answer =
          this.#enterAgain(target, options) ?? (await this.#take(target, options, startedAt));
        if (!(answer instanceof Holding)) {
          await this.#backOut(taken);
          return this.#refused(target.key, answer);
        }
        taken.push(answer);
        // Waiting for one key may have outlasted another.
        for (const holding of taken) holding.assertHeld();
      }
    } catch (error) {
      await this.#backOut(taken);
      throw error;
    }
    // In one step with joining the leases that a shutdown looks after.
    if (this.#closing !== undefined && taken.some(({ owner }) => owner === undefined)) {
      await this.#backOut(taken);
      return this.#refused(targets[0]!.key, unavailable(this.#closing.reason));
    }
    return this.#handle(taken);
  }

  #handle(holdings: readonly Holding[]): Lease {
    const lease = new Lease(this.#leaseKeeper, holdings);
    for (const holding of holdings) holding.owner ??= lease;
    this.#leases.add(lease);
    return lease;
  }

  /** Nothing was done under those that were just taken, so none of them is kept for its `minHold`. */
  async #backOut(taken: readonly Holding[]): Promise<void> {
    const minHoldOf = ({ owner, options }: Holding): number =>
      owner === undefined ? 0 : options.minHold;
    const letGo = (holding: Holding): Promise<unknown> =>
      new Promise((tell) => this.#releaser.letGo(holding, tell, { minHold: minHoldOf(holding) }));
    await Promise.all(taken.map(letGo));
  }

  #refused(key: string, refusal: Refusal): KeyRefusal {
    const { reason, retryAfterMs, cause } = refusal;
    if (this.events.isObserved) {
      this.events.emit({
        type: 'refused',
        key,
        reason,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
        ...(cause === undefined ? {} : { error: cause }),
      });
    }
    return { ...refusal, key };
  }

  #exception(refusal: KeyRefusal, options: ResolvedOptions): Error {
    const { key, reason } = refusal;
    if (reason === 'held') return new LeaseHeldException(key, refusal.retryAfterMs);
    if (reason === 'done') return new LeaseDoneException(key, options.once!);
    return new LeaseUnavailableException(key, this.#store.name, refusal.cause, this.isClosing);
  }

  /** A key that this async context holds already is entered again, under the same fence. */
  #enterAgain({ key, qualified }: Target, options: ResolvedOptions): Holding | undefined {
    // Where no lease is, nothing asks from inside of one. A lost one is forgotten before its work has ended.
    const isAny = this.#leases.size > 0 || this.#work.size > 0;
    const holding = isAny ? this.scope.find(qualified) : undefined;
    if (holding === undefined) return undefined;
    if (holding.state === 'releasing' || holding.state === 'released') return undefined;
    // rule 4: work whose lease was lost does not go on under a new one as if nothing had happened
    holding.assertHeld();
    if (options.once !== undefined && options.once !== holding.options.once) {
      throw new TypeError(ONCE_ON_REENTRY(key, options.once));
    }
    const { permits } = holding.hold;
    // Others share it: whoever asks for fewer beside it does not have that here.
    if (options.permits < permits) {
      throw new RangeError(PERMITS_ON_REENTRY(key, permits, options.permits));
    }
    holding.uses++;
    return holding;
  }

  async #take(
    target: Target,
    options: ResolvedOptions,
    startedAt: number,
  ): Promise<Holding | Refusal> {
    if (this.#closing !== undefined) return unavailable(this.#closing.reason);
    // While another of the keys was taken, too.
    options.signal?.throwIfAborted();
    const answer = await new Promise<Holding | Refusal>((found, failed) =>
      this.#seek(target, options, startedAt, found, failed),
    );
    if (answer instanceof Holding) this.#acquired(answer, startedAt);
    return answer;
  }

  #acquired({ key, fence, ttl }: Holding, startedAt: number): void {
    if (!this.events.isObserved) return;
    const waitedMs = this.#clock.now() - startedAt;
    this.events.emit({ type: 'acquired', key, fence, ttl, waitedMs });
  }

  #hold({ target, options }: Attempt, { hold, fence, trust, sentAt, heldFrom }: Granted): Holding {
    const holding = new Holding({
      keeper: this.#holdingKeeper,
      key: target.key,
      hold,
      fence,
      trust,
      grantedAt: this.#clock.now(),
      maxHoldAt: heldFrom + options.maxHold,
      options,
    });
    this.#renewer.plan(holding, sentAt);
    return holding;
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
}

/** It says whether work is done, is asked for, or cannot be sent before a renewal is back. */
const waitsForRelease = ({ options, renewing }: Holding): boolean =>
  options.awaitRelease || options.once !== undefined || renewing !== undefined;

/** Not ours any more, and not noticed before: lost on the way (rule 13). */
async function orLost(lease: Lease, releasing: Promise<ReleaseOutcome>): Promise<void> {
  if ((await releasing) === 'lost') throw new LeaseLostException(lease.key, 'taken');
}
