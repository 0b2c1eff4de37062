import { BehaviorSubject, distinctUntilChanged, type Observable } from 'rxjs';
import { NotLeaderException } from '../exceptions/not-leader.exception.js';
import type { DeposedEvent } from '../lease/events.js';
import type { LeaseEngine } from '../lease/lease-engine.js';
import { Lease } from '../lease/lease.js';

/** What a leadership is told at its birth. */
export interface LeadershipOptions {
  readonly ttl: number;
  /** How long work in flight may go on when this instance steps down, and how long it then has to stop. */
  readonly grace: number;
  readonly campaignWhen: () => boolean | Promise<boolean>;
  readonly onError: (error: unknown) => void;
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
  /** Whether this instance leads: what it is now, then every change. */
  readonly isLeader$: Observable<boolean>;

  readonly #engine: LeaseEngine;
  readonly #options: LeadershipOptions;
  readonly #leads = new BehaviorSubject(false);
  readonly #stop = new AbortController();
  #lease: Lease | undefined;
  #steppingDown: Promise<void> | undefined;
  #campaigning: Promise<void> | undefined;
  #runs = 0;
  #onRunEnded = new Set<() => void>();

  /** @internal */
  constructor(
    readonly group: string,
    engine: LeaseEngine,
    options: LeadershipOptions,
  ) {
    this.#engine = engine;
    this.#options = options;
    this.isLeader$ = this.#leads.pipe(distinctUntilChanged());
  }

  /** Looks at the clock: true is never older than this call. */
  get isLeader(): boolean {
    return this.#steppingDown === undefined && this.#lease !== undefined && this.#lease.isHeld;
  }

  /** The lease this instance leads by, with its fence and signal; `undefined` when it does not lead. */
  get lease(): Lease | undefined {
    return this.isLeader ? this.#lease : undefined;
  }

  /**
   * Runs `work` if this instance leads, with the leadership's fence and signal; else returns `undefined`. The
   * leadership is not given up while it runs.
   */
  async run<T>(work: (lease: Lease) => T | Promise<T>): Promise<T | undefined> {
    const { lease } = this;
    if (lease === undefined) return undefined;
    const handle = this.#engine.enter(lease);
    this.#runs++;
    try {
      return await this.#engine.runIn(handle, () => work(handle));
    } finally {
      this.#runs--;
      for (const look of this.#onRunEnded) look();
    }
  }

  /**
   * Stops leading: no new work begins, work in flight may finish, then its signal aborts, and only when it has
   * stopped is the leadership given to the next (rule 11). Campaigns again after a ttl.
   */
  stepDown(): Promise<void> {
    return this.#stepDown('stepped-down');
  }

  /** @internal */
  start(): void {
    if (this.#stop.signal.aborted) return;
    this.#campaigning ??= this.#campaign().catch(this.#options.onError);
  }

  /** @internal */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#stepDown('shutdown');
    await this.#campaigning;
    this.#leads.complete();
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted || this.#engine.isClosing;
  }

  async #campaign(): Promise<void> {
    const { ttl } = this.#options;
    while (!this.#isStopped) {
      const lease = await this.#win();
      if (lease === undefined) {
        // A refusal took its own time; this is for those that come at once: abstaining, a store that is down.
        await this.#pause(ttl / 10);
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
        // No longer, so that it is asked now and then whether it still wants to.
        wait: ttl,
        signal: this.#stop.signal,
      });
      return answer instanceof Lease ? answer : undefined;
    } catch (error) {
      if (!this.#isStopped) this.#options.onError(error);
      return undefined;
    }
  }

  /** Leads until it is over; says whether it was left rather than lost. */
  async #lead(lease: Lease): Promise<boolean> {
    this.#lease = lease;
    const { key, fence } = lease;
    this.#engine.events.emit({ type: 'elected', key, group: this.group, fence });
    this.#leads.next(true);
    const lost = new Promise<false>((resolve) => {
      lease.holdings[0]!.onLost.add((reason) => {
        // Stepping down said so already.
        if (this.#steppingDown === undefined) this.#deposed(lease, reason);
        resolve(false);
      });
    });
    const left = this.#watchHealth(lease).then(async () => {
      await this.#steppingDown;
      return true;
    });
    const wasLeft = await Promise.race([lost, left]);
    await this.#steppingDown;
    this.#lease = undefined;
    this.#steppingDown = undefined;
    await lease.release();
    return wasLeft;
  }

  /** Resolves when it steps down, which it makes the instance do itself when that is unhealthy. */
  async #watchHealth(lease: Lease): Promise<void> {
    while (this.#steppingDown === undefined && lease.isHeld) {
      await this.#pause(this.#options.ttl / 3);
      if (this.#steppingDown !== undefined || !lease.isHeld) return;
      if (!(await this.#isHealthy())) {
        await this.#stepDown('unhealthy');
        return;
      }
    }
  }

  async #isHealthy(): Promise<boolean> {
    try {
      return (await this.#options.campaignWhen()) === true;
    } catch (error) {
      // Not to know whether one is healthy is not to be.
      this.#options.onError(error);
      return false;
    }
  }

  #stepDown(reason: DeposedReason): Promise<void> {
    const lease = this.#lease;
    if (this.#steppingDown === undefined && lease?.isHeld) {
      this.#steppingDown = this.#letGo(lease, reason);
    }
    return this.#steppingDown ?? Promise.resolve();
  }

  async #letGo(lease: Lease, reason: DeposedReason): Promise<void> {
    // After the caller has set the state that says so.
    await Promise.resolve();
    this.#deposed(lease, reason);
    this.#wake();
    if (!(await this.#drained(this.#options.grace))) {
      for (const holding of lease.holdings) holding.abort(new NotLeaderException(this.group));
      const isStopped = await this.#drained(this.#isStopped ? this.#options.grace : Infinity);
      // Work that ignores its signal keeps the lease from the next; a shutdown leaves it to the ttl.
      if (!isStopped) return;
    }
    await lease.release();
  }

  #deposed(lease: Lease, reason: DeposedReason): void {
    const { key, fence } = lease;
    this.#leads.next(false);
    this.#engine.events.emit({ type: 'deposed', key, group: this.group, fence, reason });
  }

  #drained(ms: number): Promise<boolean> {
    if (this.#runs === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (isDrained: boolean): void => {
        this.#onRunEnded.delete(look);
        if (limit !== undefined) this.#engine.agenda.cancel(limit);
        resolve(isDrained);
      };
      const look = (): void => {
        if (this.#runs === 0) end(true);
      };
      const limit = ms === Infinity ? undefined : this.#engine.agenda.after(ms, () => end(false));
      this.#onRunEnded.add(look);
    });
  }

  #wake = (): void => {};

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const { agenda } = this.#engine;
      const wake = (): void => {
        agenda.cancel(alarm);
        this.#stop.signal.removeEventListener('abort', wake);
        resolve();
      };
      const alarm = agenda.after(ms, wake);
      this.#wake = wake;
      this.#stop.signal.addEventListener('abort', wake, { once: true });
      if (this.#stop.signal.aborted) wake();
    });
  }
}
