import { defer, distinctUntilChanged, ReplaySubject, type Observable } from 'rxjs';
import { NotLeaderException } from '../exceptions/not-leader.exception.js';
import { NO_HEALTH, SHUTTING_DOWN } from '../lease.messages.js';
import type { DeposedEvent } from '../lease/events.js';
import type { LeaseEngine } from '../lease/lease-engine.js';
import { Lease } from '../lease/lease.js';
import { Term } from './term.js';

/** What a leadership is told at its birth. */
export interface LeadershipOptions {
  readonly ttl: number;
  /** How long work in flight may go on when this instance steps down, and how long it then has to stop. */
  readonly grace: number;
  readonly campaignWhen: () => boolean | Promise<boolean>;
  /** Told once per trouble, not once per try. */
  readonly onError: (error: unknown) => void;
  /** Work did not stop when told to, and so keeps the leadership from the next. */
  readonly onStuck: () => void;
}

type DeposedReason = DeposedEvent['reason'];

/**
 * This instance's part in the election of one group. The states, and every way between them:
 *
 * ```
 *   idle ──start()──▶ campaigning ──won──▶ leading ──lost──────────────▶ campaigning
 *                         ▲                   └──stepDown(), unhealthy──▶ stepping down ──released──▶ campaigning
 *   any ──stop()──▶ stopped
 * ```
 *
 * @example
 * ```ts
 * const outbox = elections.leadership('outbox');
 * outbox.isLeader$.subscribe((leads) => gauge.set(leads ? 1 : 0));
 * await outbox.run((lease) => dispatch(lease.signal)); // undefined, and nothing run, when it does not lead
 * ```
 * @publicApi
 */
export class Leadership {
  /** Whether this instance leads: what it is now, then every change. Completes when the application ends. */
  readonly isLeader$: Observable<boolean>;

  readonly #engine: LeaseEngine;
  readonly #options: LeadershipOptions;
  readonly #leads = new ReplaySubject<boolean>(1);
  readonly #news: (() => void)[] = [];
  readonly #stop = new AbortController();
  #term: Term | undefined;
  #campaigning: Promise<void> | undefined;
  #isTroubled = false;

  /** @internal */
  constructor(
    readonly group: string,
    engine: LeaseEngine,
    options: LeadershipOptions,
  ) {
    this.#engine = engine;
    this.#options = options;
    this.#leads.next(false);
    this.isLeader$ = defer(() => {
      // Looks at the clock, so that nobody's first value is one that a blocked event loop has outlived (rule 4).
      void this.isLeader;
      return this.#leads.pipe(distinctUntilChanged());
    });
  }

  /** Looks at the clock: true is never older than this call. */
  get isLeader(): boolean {
    return this.#term?.isLeading ?? false;
  }

  /**
   * The lease this instance leads by, with its fence and signal; `undefined` when it does not lead. Its signal
   * aborts whenever the leadership ends, lost or given up.
   */
  get lease(): Lease | undefined {
    return this.isLeader ? this.#term?.lease : undefined;
  }

  /**
   * Runs `work` if this instance leads, with the leadership's fence and signal; else returns `undefined`. The
   * leadership is not given up while it runs.
   */
  async run<T>(work: (lease: Lease) => T | Promise<T>): Promise<T | undefined> {
    const term = this.#term;
    return term?.isLeading ? await term.run(work) : undefined;
  }

  /**
   * Stops leading: no new work begins, work in flight may finish, then its signal aborts, and only when it has
   * stopped is the leadership given to the next (rule 11). Campaigns again after a ttl.
   *
   * Resolves when the leadership is given up; inside of work that it would have to wait for, at once.
   */
  async stepDown(): Promise<void> {
    const term = this.#term;
    const done = this.#stepDown('stepped-down', this.#options.grace);
    if (!term?.isAround) await done;
  }

  /** @internal */
  start(): void {
    if (this.#stop.signal.aborted) return;
    this.#campaigning ??= this.#engine.scope.outside(() =>
      this.#campaign().catch(this.#options.onError),
    );
  }

  /**
   * Steps down for good; resolves when the leadership is given up, which is as late as its work stops.
   *
   * @internal
   */
  async stop(grace: number = this.#options.grace): Promise<void> {
    this.#stop.abort();
    await this.#stepDown('shutdown', grace);
    await this.#campaigning;
    this.#leads.complete();
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted || this.#engine.isClosing;
  }

  async #campaign(): Promise<void> {
    const { ttl } = this.#options;
    const { clock } = this.#engine.agenda;
    while (!this.#isStopped) {
      const startedAt = clock.now();
      const lease = await this.#win();
      if (lease === undefined) {
        // For answers that come at once: abstaining, a store that is down. One that took its time is asked again
        // without delay, so that no leader goes unnoticed in between.
        const rest = startedAt + ttl / 10 - clock.now();
        if (rest > 0) await this.#pause(rest);
      } else if (this.#isStopped) {
        await lease.release();
      } else {
        const left = await this.#lead(lease);
        // Whoever leaves of its own will lets another go first.
        if (left) await this.#pause(ttl);
      }
    }
  }

  async #win(): Promise<Lease | undefined> {
    if (!(await this.#isHealthy())) return undefined;
    const { ttl } = this.#options;
    try {
      const answer = await this.#engine.campaign(this.group, {
        ttl,
        // No longer, so that it is asked as often as a leader is whether it still wants to.
        wait: ttl / 3,
        signal: this.#stop.signal,
      });
      return answer instanceof Lease ? answer : undefined;
    } catch (error) {
      if (!this.#isStopped) this.#trouble(error);
      return undefined;
    }
  }

  /** Leads until it is over; says whether it was left rather than lost. */
  async #lead(lease: Lease): Promise<boolean> {
    const term = new Term(lease, this.#engine);
    lease.holdings[0]!.onLost.add((reason) => {
      this.#depose(term, reason);
      this.#wake();
    });
    // Lost on the way here: it never led.
    if (!term.isLeading) return false;
    this.#term = term;
    const { key, fence } = lease;
    this.#announce(() => {
      this.#leads.next(true);
      this.#engine.events.emit({ type: 'elected', key, group: this.group, fence });
    });
    await this.#watchHealth(term);
    await term.steppingDown;
    // For a lease that was released by hand.
    this.#depose(term, 'stepped-down');
    this.#term = undefined;
    await lease.release();
    return term.steppingDown !== undefined || !term.isLost;
  }

  /** Resolves when the term ends, which it makes it do itself when the instance is unhealthy. */
  async #watchHealth(term: Term): Promise<void> {
    while (term.isLeading) {
      await this.#pause(this.#options.ttl / 3);
      if (!term.isLeading) return;
      const isHealthy = await this.#isHealthy();
      if (!isHealthy && term.isLeading) void this.#stepDown('unhealthy', this.#options.grace);
    }
  }

  /** Not to know whether one is healthy is not to be: no answer in time is a no, and so is an error. */
  async #isHealthy(): Promise<boolean> {
    const { ttl, campaignWhen } = this.#options;
    let isHealthy = false;
    let trouble: unknown;
    const ask = async (): Promise<void> => {
      try {
        isHealthy = (await campaignWhen()) === true;
      } catch (error) {
        trouble = error;
      }
    };
    const inTime = await this.#pause(ttl / 3, ask());
    if (!inTime) trouble = new Error(NO_HEALTH(ttl / 3));
    if (trouble === undefined) this.#isTroubled = false;
    else this.#trouble(trouble);
    return isHealthy;
  }

  #trouble(error: unknown): void {
    if (!this.#isTroubled) this.#options.onError(error);
    this.#isTroubled = true;
  }

  #stepDown(reason: DeposedReason, grace: number): Promise<void> {
    const term = this.#term;
    if (term?.isLeading) term.steppingDown = this.#letGo(term, reason, grace);
    return term?.steppingDown ?? Promise.resolve();
  }

  /** Stop, then release (rule 11). */
  async #letGo(term: Term, reason: DeposedReason, grace: number): Promise<void> {
    // After the caller has set the state that says so.
    await Promise.resolve();
    this.#depose(term, reason);
    this.#wake();
    await term.drained(grace);
    // Also for what was begun outside of run(): the signal is how it is told.
    term.abort(
      reason === 'shutdown' ? new Error(SHUTTING_DOWN()) : new NotLeaderException(this.group),
    );
    if (!(await term.drained(this.#options.grace))) {
      // A shutdown does not wait for it and leaves the lease to its ttl.
      if (!this.#isStopped) this.#options.onStuck();
      await term.drained();
    }
    await term.lease.release();
  }

  #depose(term: Term, reason: DeposedReason): void {
    if (term !== this.#term || term.isDeposed) return;
    term.isDeposed = true;
    const { key, fence } = term.lease;
    this.#announce(() => {
      this.#leads.next(false);
      this.#engine.events.emit({ type: 'deposed', key, group: this.group, fence, reason });
    });
  }

  /** A listener may itself find out the next piece of news; everybody hears it after the one before. */
  #announce(tell: () => void): void {
    this.#news.push(tell);
    if (this.#news.length > 1) return;
    for (; this.#news.length > 0; this.#news.shift()) this.#news[0]!();
  }

  #wake = (): void => {};

  /** Until `ms` have passed, `until` has settled, or there is news; false when it was the time. */
  #pause(ms: number, until?: Promise<void>): Promise<boolean> {
    return new Promise((resolve) => {
      const { agenda } = this.#engine;
      const end = (isWoken: boolean): void => {
        agenda.cancel(alarm);
        this.#stop.signal.removeEventListener('abort', wake);
        resolve(isWoken);
      };
      const wake = (): void => end(true);
      const alarm = agenda.after(ms, () => end(false));
      this.#wake = wake;
      this.#stop.signal.addEventListener('abort', wake, { once: true });
      if (this.#stop.signal.aborted) wake();
      until?.then(wake, wake);
    });
  }
}
