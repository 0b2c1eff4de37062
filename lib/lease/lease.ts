import { setMaxListeners } from 'node:events';
import { inspect } from 'node:util';
import { merge, take, type Observable } from 'rxjs';
import type { Duration } from './duration.js';
import type { LeaseEvents, LeaseLostEvent, ReleaseOutcome } from './events.js';
import type { Holding } from './holding.js';

/** What a handle asks of the engine that made it. */
export interface LeaseKeeper {
  events(): LeaseEvents;
  /** Tells what came of it when it is over; relaxed when nobody waits for that. */
  release(lease: Lease, tell: (outcome: ReleaseOutcome) => void, isRelaxed: boolean): void;
  renew(lease: Lease, ttl: Duration | undefined): Promise<void>;
}

/**
 * The handle a holder has: ownership of a key for a time, and the means to know that it is over.
 *
 * @example
 * ```ts
 * await using lease = await leases.acquire('report:42');
 * for (const page of pages) {
 *   lease.assertHeld();
 *   await store.write(page, { fence: lease.fence, signal: lease.signal });
 * }
 * ```
 * @publicApi
 */
export class Lease implements AsyncDisposable {
  /** @internal Owned by the roster of the engine. */
  seat = -1;

  readonly #keeper: LeaseKeeper;
  readonly #holdings: readonly Holding[];
  #abort: AbortController | undefined;
  #isReleased = false;
  #ended: ReleaseOutcome | undefined;
  #outcome: Promise<ReleaseOutcome> | undefined;
  #tell: ((outcome: ReleaseOutcome) => void) | undefined;

  /** @internal */
  constructor(keeper: LeaseKeeper, holdings: readonly Holding[]) {
    this.#keeper = keeper;
    this.#holdings = holdings;
  }

  /** The keys that are held: one, unless several were asked for; sorted. */
  get keys(): readonly string[] {
    return this.#holdings.map((holding) => holding.key);
  }

  /** The key; of several, all of them with ` + ` between. */
  get key(): string {
    return this.keys.join(' + ');
  }

  /**
   * The fence: grows with every grant of the key, stays the same over renewals. Of several keys the highest;
   * hand {@link Lease.fenceOf} to storage that guards one of them.
   */
  get fence(): number {
    return this.#holdings.reduce((highest, { fence }) => Math.max(highest, fence), 0);
  }

  /** The fence of one of the keys. */
  fenceOf(key: string): number | undefined {
    return this.#holdings.find((holding) => holding.key === key)?.fence;
  }

  /** Milliseconds the store keeps it without a renewal. */
  get ttl(): number {
    return this.#holdings.reduce((least, { ttl }) => Math.min(least, ttl), Infinity);
  }

  /**
   * Aborts when the lease is lost, with a `LeaseLostException` as the reason, and when the application shuts down
   * or its leadership ends, while the lease is still held: stop, and give it back. A release does not abort it.
   */
  get signal(): AbortSignal {
    const [first] = this.#holdings;
    if (this.#holdings.length === 1) return first!.signal;
    if (this.#abort === undefined) {
      const abort = new AbortController();
      setMaxListeners(0, abort.signal);
      this.#abort = abort;
      for (const { signal } of this.#holdings) {
        const follow = (): void => abort.abort(signal.reason);
        if (signal.aborted) follow();
        else signal.addEventListener('abort', follow, { once: true });
      }
    }
    return this.#abort.signal;
  }

  /** Emits when the lease is lost, to late subscribers too, then completes. Completes alone after a release. */
  get lost$(): Observable<LeaseLostEvent> {
    return merge(...this.#holdings.map((holding) => holding.lost$)).pipe(take(1));
  }

  /** Whether it may be acted upon now. Looks at the clock: true is never older than this call. */
  get isHeld(): boolean {
    if (this.#isReleased) return false;
    for (const holding of this.#holdings) if (!holding.isHeld) return false;
    return true;
  }

  /** Milliseconds of trust left if no renewal succeeds; 0 when it is over. */
  get remaining(): number {
    if (!this.isHeld) return 0;
    return this.#holdings.reduce(
      (least, holding) => Math.min(least, Math.max(0, holding.remaining)),
      Infinity,
    );
  }

  /** Throws `LeaseLostException` unless the lease is held now. */
  assertHeld(): void {
    if (this.isHeld) return;
    const ended = this.#holdings.find((holding) => !holding.isHeld) ?? this.#holdings[0]!;
    throw ended.lostException();
  }

  /**
   * Renews now, and with `ttl` from now on for that long. Never shortens what is already granted. Rejects with
   * `LeaseLostException` when it is over, with `LeaseUnavailableException` when the store gives no answer.
   */
  async renew(ttl?: Duration): Promise<void> {
    this.assertHeld();
    await this.#keeper.renew(this, ttl);
  }

  /**
   * Gives the key back. May be called any number of times and never rejects: `lost` when it was not ours any
   * more, `unknown` when the store did not answer (the key then frees itself by its ttl).
   */
  release(): Promise<ReleaseOutcome> {
    // Before it begins: releasing may find a loss, and who is told of it may release again.
    this.#outcome ??= new Promise((resolve) => {
      if (this.#ended === undefined) this.#tell = resolve;
      else resolve(this.#ended);
    });
    this.#giveBack(false);
    return this.#outcome;
  }

  /** @internal As {@link release}, for who does not ask what comes of it. */
  giveBack(): void {
    this.#giveBack(true);
  }

  #giveBack(isRelaxed: boolean): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const tell = (outcome: ReleaseOutcome): void => {
      this.#ended = outcome;
      this.#tell?.(outcome);
    };
    this.#keeper.release(this, tell, isRelaxed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal */
  get holdings(): readonly Holding[] {
    return this.#holdings;
  }

  /** @internal Where what happens to it is told. */
  get events(): LeaseEvents {
    return this.#keeper.events();
  }

  /** @internal */
  get isReleased(): boolean {
    return this.#isReleased;
  }

  /** A lease may end up in a log: what people need, and no token (rule 15). */
  toJSON(): { key: string; fence: number; ttl: number; isHeld: boolean; remaining: number } {
    const { key, fence, ttl, isHeld, remaining } = this;
    return { key, fence, ttl, isHeld, remaining };
  }

  /** @internal The same for a debugger that looks behind getters (rule 15). */
  [inspect.custom](): string {
    return `Lease ${inspect(this.toJSON())}`;
  }
}
