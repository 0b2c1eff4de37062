import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
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
import { LeaseEvents } from './events.js';
import { Holding, type HoldingKeeper } from './holding.js';
import { toElectionTarget, toTargets, type Target } from './key.js';
import { LeaseScope } from './lease-scope.js';
import { Lease, type LeaseKeeper } from './lease.js';
import { PATIENCE_AT_MOST, withPatience } from './patience.js';
import { Releaser } from './releaser.js';
import { Renewer } from './renewer.js';
import { resolveOptions, type ResolvedOptions } from './resolve-options.js';
import { UnderWay } from './under-way.js';
import { WorkInFlight } from './work-in-flight.js';

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
  readonly #renewer: Renewer;
  readonly #claimant: Claimant;
  readonly #contender: Contender;
  readonly #releaser: Releaser;
  readonly #work: WorkInFlight;
  readonly #underWay = new UnderWay();
  readonly #leases = new Set<Lease>();
  /** Taken by hand, and waited for by a shutdown. */
  readonly #byHand = new Set<Lease>();
  readonly #closing = new AbortController();

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
    const onFreed = (qualified: string): void => this.#contender.hint(qualified);
    this.#renewer = new Renewer(store, this.agenda, random, this.events);
    this.#releaser = new Releaser(store, this.agenda, this.events, onFreed);
    this.#claimant = new Claimant({
      store,
      agenda: this.agenda,
      instance,
      token,
      underWay: this.#underWay,
      hold: (attempt, granted) => this.#hold(attempt, granted),
      onFreed,
    });
    const { signal } = this.#closing;
    // Every waiter listens to it: many are no leak.
    setMaxListeners(0, signal);
    this.#contender = new Contender(store, this.agenda, random, this.#claimant, signal);
    // Defaults that do not fit the store are told at start, not at the first claim.
    resolveOptions(undefined, this.#defaults, store);
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
    return this.#contender.awaited;
  }

  resolve(options: LeaseOptions | undefined): ResolvedOptions {
    return resolveOptions(options, this.#defaults, this.#store);
  }

  async tryAcquire(key: string | readonly string[], options?: LeaseOptions): Promise<Lease | null> {
    const asked = this.resolve(options);
    const resolved = options?.wait === undefined ? { ...asked, wait: 0 } : asked;
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
    return this.runIn(lease, () => work(lease));
  }

  /** Runs `work` inside a lease and gives the lease back, whatever happens (rules 7 and 13). */
  async runIn<T>(lease: Lease, work: () => T | Promise<T>): Promise<T> {
    this.#work.begin(lease);
    try {
      // Time may have passed since it was granted (rule 4).
      lease.assertHeld();
      const result = await this.scope.run(lease, work);
      const isByHand = lease.isReleased;
      if (!isByHand) lease.assertHeld();
      for (const holding of lease.holdings) {
        // Released by hand after it was lost: lost on the way all the same.
        if (holding.state === 'lost') throw holding.lostException();
        if (holding.owner === lease) holding.succeeded = true;
      }
      // Not ours any more, and not noticed before: lost on the way (rule 13).
      if ((await lease.release()) === 'lost' && !isByHand) {
        throw new LeaseLostException(lease.key, 'taken');
      }
      return result;
    } finally {
      await lease.release();
      this.#work.end(lease);
    }
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
    this.#closing.abort(new Error(SHUTTING_DOWN()));
    await this.idle(grace);
    for (const lease of this.#leases) {
      if (!this.#work.has(lease) && lease.holdings.some(({ hasSignal }) => hasSignal)) {
        this.#work.begin(lease);
        this.#byHand.add(lease);
      }
      for (const holding of lease.holdings) holding.abort(this.#closing.signal.reason);
    }
    await this.idle(stopGrace);
    const left = this.#work.leases.filter((lease) => !lease.isReleased);
    this.#renewer.stop();
    const leftHoldings = left.flatMap((lease) => lease.holdings);
    for (const holding of leftHoldings) this.agenda.cancel(holding);
    await Promise.all(
      [...this.#leases].filter((lease) => !left.includes(lease)).map((lease) => lease.release()),
    );
    // Claims in flight too: what they are granted by now is to be given back. Each is bounded by its patience.
    await this.#underWay.over();
    await Promise.all(leftHoldings.map((holding) => holding.renewing));
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
      if (holding.lossReason !== 'taken') this.#claimant.giveBack(holding.hold);
      this.#contender.hint(holding.hold.key);
    },
  };

  readonly #leaseKeeper: LeaseKeeper = {
    release: async (lease) => {
      const outcomes = await Promise.all(
        lease.holdings.map((holding) => this.#releaser.letGo(holding)),
      );
      this.#forget(lease);
      if (outcomes.includes('lost')) return 'lost';
      return outcomes.includes('unknown') ? 'unknown' : 'released';
    },
    renew: async (lease, ttl) => {
      await Promise.all(lease.holdings.map((holding) => this.#renewNow(holding, ttl)));
    },
  };

  #forget(lease: Lease): void {
    this.#leases.delete(lease);
    if (this.#byHand.delete(lease)) this.#work.end(lease);
  }

  /** Counted until it has settled, so that a shutdown waits for what it still has to give back. */
  #obtain(targets: readonly Target[], options: ResolvedOptions): Promise<Lease | KeyRefusal> {
    return this.#underWay.add(this.#obtainAll(targets, options));
  }

  /** All of the keys, in their order, or none of them. */
  async #obtainAll(
    targets: readonly Target[],
    options: ResolvedOptions,
  ): Promise<Lease | KeyRefusal> {
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
    // In one step with joining the leases that a shutdown looks after.
    if (this.isClosing && taken.some(({ owner }) => owner === undefined)) {
      await this.#backOut(taken);
      return this.#refused({ ...unavailable(this.#closing.signal.reason), key: targets[0]!.key });
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
    await Promise.all(taken.map((holding) => this.#releaser.letGo(holding, minHoldOf(holding))));
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
    return new LeaseUnavailableException(key, this.#store.name, refusal.cause, this.isClosing);
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
    if (this.isClosing) return unavailable(this.#closing.signal.reason);
    const attempt = this.#claimant.attempt(target, options);
    const answer = await (options.wait > 0
      ? this.#contender.waitFor(attempt, startedAt + options.wait)
      : this.#contender.ask(attempt));
    if (answer instanceof Holding) {
      const { key, fence, ttl } = answer;
      const waitedMs = this.#clock.now() - startedAt;
      this.events.emit({ type: 'acquired', key, fence, ttl, waitedMs });
    }
    return answer;
  }

  #hold({ target, options }: Attempt, { hold, fence, trust, sentAt }: Granted): Holding {
    const holding = new Holding({
      keeper: this.#holdingKeeper,
      key: target.key,
      hold,
      fence,
      trust,
      grantedAt: this.#clock.now(),
      maxHoldAt: sentAt + options.maxHold,
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
