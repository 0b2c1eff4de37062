import { setMaxListeners } from 'node:events';
import { ReplaySubject, type Observable } from 'rxjs';
import { LeaseLostException } from '../exceptions/lease-lost.exception.js';
import type { Hold, RenewOutcome } from '../stores/lease-store.js';
import { leewayOf } from './agenda.js';
import type { LeaseLostEvent, LossReason } from './events.js';
import type { Lease } from './lease.js';
import type { Renewable } from './renewer.js';
import type { ResolvedOptions } from './resolve-options.js';
import type { Trust } from './trust.js';

/** What a holding asks of those who keep it. */
export interface HoldingKeeper {
  /** Its time has come: to be renewed, or to end. */
  due(holding: Holding): void;
  /** Calls those who are told of a loss: they are no part of the work that found it. */
  outside(tell: () => void): void;
  /** It has just been lost: tell everybody. */
  tell(holding: Holding, reason: LossReason): LeaseLostEvent;
  /** Then give back what may be left of it. */
  lost(holding: Holding): void;
}

/**
 * One key held by one acquisition. The states, and every way between them:
 *
 * ```
 *   held ──lose()──────▶ lost                    final (rule 5)
 *     └──beginRelease()─▶ releasing ──▶ released
 * ```
 */
export class Holding implements Renewable {
  // Appointment: owned by the agenda
  due = 0;
  slot = -1;

  #state: 'held' | 'lost' | 'releasing' | 'released' = 'held';
  #lossReason: LossReason | undefined;
  #abort: AbortController | undefined;
  #loss: LeaseLostEvent | undefined;
  #lost$: ReplaySubject<LeaseLostEvent> | undefined;

  /** Monotonic time of the next renewal; infinite without one. */
  renewAt = Infinity;
  /** Renewals that failed since the last success. */
  failures = 0;
  /** The renewal that is under way, if any. Never rejects. */
  renewing: Promise<readonly RenewOutcome[]> | undefined;
  lagToldOf = -1;
  /** Handles that use it: the one that acquired it and those that entered again. */
  uses = 1;
  #onLost: Set<(reason: LossReason) => void> | undefined;

  /** The handle that acquired it; those that entered again are not remembered. */
  owner: Lease | undefined;
  /** The run that acquired it succeeded: its unit of work is done. */
  succeeded = false;
  /** To be done when a release that is under way is over, however it ended. */
  afterRelease: (() => void) | undefined;

  readonly keeper: HoldingKeeper;
  /** As the user wrote it. */
  readonly key: string;
  hold: Hold;
  readonly fence: number;
  readonly trust: Trust;
  readonly options: ResolvedOptions;
  /** Monotonic times. */
  readonly grantedAt: number;
  readonly maxHoldAt: number;

  constructor(granted: {
    keeper: HoldingKeeper;
    key: string;
    hold: Hold;
    fence: number;
    trust: Trust;
    options: ResolvedOptions;
    grantedAt: number;
    maxHoldAt: number;
  }) {
    this.keeper = granted.keeper;
    this.key = granted.key;
    this.hold = granted.hold;
    this.fence = granted.fence;
    this.trust = granted.trust;
    this.options = granted.options;
    this.grantedAt = granted.grantedAt;
    this.maxHoldAt = granted.maxHoldAt;
  }

  get state(): 'held' | 'lost' | 'releasing' | 'released' {
    return this.#state;
  }

  get lossReason(): LossReason | undefined {
    return this.#lossReason;
  }

  get ttl(): number {
    return this.hold.ttl;
  }

  /** Told after the signal and the event. Made when somebody asks for it, as all that most leases never need. */
  get onLost(): Set<(reason: LossReason) => void> {
    this.#onLost ??= new Set();
    return this.#onLost;
  }

  get leeway(): number {
    return leewayOf(this.ttl);
  }

  /** Of a lease on several keys that has lost one, the others are left to their ttl. */
  get isWanted(): boolean {
    const { options, owner, uses } = this;
    const isBroken =
      uses === 1 &&
      owner?.isReleased === false &&
      owner.holdings.some(({ state }) => state === 'lost');
    return options.renew && !isBroken;
  }

  get sentAt(): number {
    return this.trust.sentAt;
  }

  get heldMs(): number {
    return this.trust.clock.now() - this.grantedAt;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      // It is there to be handed to everything that the work does: many listeners are no leak.
      setMaxListeners(0, this.#abort.signal);
      if (this.#state === 'lost') this.#abort.abort(this.lostException());
    }
    return this.#abort.signal;
  }

  /** Emits the loss, to late subscribers too, and completes; completes alone after a release. */
  get lost$(): Observable<LeaseLostEvent> {
    if (this.#lost$ === undefined) {
      this.#lost$ = new ReplaySubject(1);
      if (this.#loss !== undefined) this.#lost$.next(this.#loss);
      // Asked for while the loss is being told, it is told in its turn.
      if (this.#loss !== undefined || this.#state === 'released') this.#lost$.complete();
    }
    return this.#lost$;
  }

  /** Monotonic time at which trust ends unless it is renewed. */
  get endsAt(): number {
    return Math.min(this.trust.endsAt, this.maxHoldAt);
  }

  get remaining(): number {
    if (!this.isHeld) return 0;
    return Math.min(this.trust.remaining, this.maxHoldAt - this.trust.clock.now());
  }

  /** Looks at the clock now (rule 4): whoever asks first after a pause is the one that finds the loss. */
  get isHeld(): boolean {
    if (this.#state !== 'held') return false;
    const verdict = this.#verdict();
    if (verdict === undefined) return true;
    this.lose(verdict);
    return false;
  }

  assertHeld(): void {
    if (!this.isHeld) throw this.lostException();
  }

  lostException(): LeaseLostException {
    return new LeaseLostException(this.key, this.#lossReason);
  }

  keep(): void {
    this.keeper.due(this);
  }

  /** A renewal that was sent at `mono` succeeded. Too late is too late (rule 5). */
  renewed(mono: number, wall: number, ttl: number): boolean {
    if (!this.isHeld) return false;
    this.trust.extend(mono, wall, ttl);
    this.failures = 0;
    return this.isHeld;
  }

  /** Rule 5, in its order. */
  lose(reason: LossReason): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#lossReason = reason;
    this.trust.leave();
    this.keeper.outside(() => {
      this.#abort?.abort(this.lostException());
      const loss = this.keeper.tell(this, reason);
      this.#loss = loss;
      this.#lost$?.next(loss);
      this.#lost$?.complete();
      for (const listener of this.#onLost ?? []) listener(reason);
      this.#onLost?.clear();
    });
    this.keeper.lost(this);
  }

  /** Whether anybody asked for the signal, and so can be told by it. */
  get hasSignal(): boolean {
    return this.#abort !== undefined;
  }

  /** Stops the work without ending the lease: it is still held and renewed (rule 11). */
  abort(reason: unknown): void {
    void this.signal;
    this.#abort!.abort(reason);
  }

  /** From here on nobody may act as the owner. False when there is nothing left to release. */
  beginRelease(): boolean {
    if (!this.isHeld) return false;
    this.#state = 'releasing';
    this.trust.leave();
    return true;
  }

  endRelease(): void {
    this.#state = 'released';
    this.#onLost?.clear();
    this.#lost$?.complete();
    this.afterRelease?.();
  }

  /** What ended it, the earliest first: a process that slept past everything is told what came first. */
  #verdict(): LossReason | undefined {
    const { ended, endsAt } = this.trust;
    if (this.maxHoldAt <= endsAt && this.trust.clock.now() >= this.maxHoldAt) return 'max-hold';
    return ended;
  }
}
