import type { Hold, RenewOutcome } from '../../stores/lease-store.js';
import { leewayOf } from '../agenda.js';
import type { Clock } from '../clock.js';
import type { Renewable } from '../renewer.js';
import { Trust } from '../trust.js';
import type { Charge } from './thread-messages.js';
import type { TrustBoard } from './trust-board.js';

/** What a ward asks of those who look after it. */
export interface WardKeeper {
  readonly clock: Clock;
  readonly board: TrustBoard;
  due(ward: Ward): void;
  gone(ward: Ward): void;
}

/**
 * A lease of the other thread, as this one renews it. Whether it is held is for the other to say; here it is
 * renewed for as long as each success comes while the one before it is trusted (rule 5).
 */
export class Ward implements Renewable {
  due = 0;
  slot = -1;
  renewAt = Infinity;
  failures = 0;
  lagToldOf = -1;
  renewing: Promise<readonly RenewOutcome[]> | undefined;
  hold: Hold;
  readonly id: number;
  readonly place: number;
  readonly #trust: Trust;
  readonly #keeper: WardKeeper;
  readonly #maxHoldAt: number;
  #isOver = false;

  constructor(keeper: WardKeeper, { id, place, hold, mono, wall, maxHoldAt }: Charge) {
    this.#keeper = keeper;
    this.id = id;
    this.place = place;
    this.hold = hold;
    this.#trust = new Trust(keeper.clock, mono, wall, hold.ttl);
    this.#maxHoldAt = maxHoldAt;
  }

  get ttl(): number {
    return this.hold.ttl;
  }

  get leeway(): number {
    return leewayOf(this.ttl);
  }

  get isWanted(): boolean {
    return true;
  }

  get sentAt(): number {
    return this.#trust.sentAt;
  }

  get endsAt(): number {
    return Math.min(this.#trust.endsAt, this.#maxHoldAt);
  }

  get remaining(): number {
    return Math.min(this.#trust.remaining, this.#maxHoldAt - this.#keeper.clock.now());
  }

  get isHeld(): boolean {
    return !this.#isOver && this.remaining > 0;
  }

  /** The other thread renewed it by itself, perhaps for another ttl. */
  heard({ hold, mono, wall }: Charge): void {
    this.hold = hold;
    this.#trust.extend(mono, wall, hold.ttl);
  }

  renewed(mono: number, wall: number, ttl: number): boolean {
    if (!this.isHeld) return false;
    this.#trust.extend(mono, wall, ttl);
    this.failures = 0;
    if (!this.isHeld) return false;
    this.#keeper.board.publish(this.place, { mono, wall, ttl });
    return true;
  }

  lose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#keeper.board.markGone(this.place);
    this.#keeper.gone(this);
  }

  /** From here on nothing is written to its place: another lease may have it. */
  leave(): void {
    this.#isOver = true;
  }

  keep(): void {
    this.#keeper.due(this);
  }
}
