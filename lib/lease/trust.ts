import type { Clock } from './clock.js';

/** What the holder keeps back of every ttl, for what its clock and the store's disagree about. */
export const MARGIN = 1 / 6;

const SLEW = 50;

/** Renewals that another thread made, for whoever looks at the clock here. */
export interface TrustNews {
  /** The store told it that the lease is not ours any more. */
  readonly isGone: boolean;
  /** Extends the trust by what was renewed since it was last asked. */
  hear(trust: Trust): void;
  /** Nobody will look any more. */
  leave(): void;
}

/** How long a ttl is trusted. */
export const trustedSpan = (ttl: number): number => ttl - ttl * MARGIN;

/**
 * The time in which a holder may act as the owner, on its own clocks (rule 3): from before the winning
 * request left, for the ttl less a margin. Nobody else's clock takes part.
 */
export class Trust {
  #mono: number;
  #wall: number;
  #span: number;
  /** Where somebody else renews it. */
  news: TrustNews | undefined;

  /** @param mono - monotonic time before the request left; `wall` the wall clock at the same moment */
  constructor(
    readonly clock: Clock,
    mono: number,
    wall: number,
    ttl: number,
  ) {
    this.#mono = mono;
    this.#wall = wall;
    this.#span = trustedSpan(ttl);
  }

  /** On the monotonic clock. */
  get endsAt(): number {
    this.news?.hear(this);
    return this.#mono + this.#span;
  }

  /** Monotonic time before the request left that earned it; the wall clock at the same moment. */
  get sentAt(): number {
    this.news?.hear(this);
    return this.#mono;
  }

  get sentAtWall(): number {
    this.news?.hear(this);
    return this.#wall;
  }

  /**
   * Milliseconds left, not above zero when over. A suspended machine stops its monotonic clock but not the
   * store's ttl, so the clock that ran further counts (rule 4).
   */
  get remaining(): number {
    return Math.min(this.endsAt - this.clock.now(), this.#span - this.#wallElapsed);
  }

  /** Why it is over; `undefined` while it is not. */
  get ended(): 'expired' | 'suspended' | 'taken' | undefined {
    if (this.news?.isGone) return 'taken';
    const monoLeft = this.endsAt - this.clock.now();
    if (monoLeft <= 0) return 'expired';
    if (this.#wallElapsed < this.#span) return undefined;
    // The wall clock counts whole milliseconds and is slewed now and then: a little ahead is no sleep.
    return monoLeft > SLEW ? 'suspended' : 'expired';
  }

  /** A success that was sent earlier than the last one earns nothing: trust is never shortened by an answer. */
  extend(mono: number, wall: number, ttl: number): void {
    const span = trustedSpan(ttl);
    if (mono + span <= this.#mono + this.#span) return;
    this.#mono = mono;
    this.#wall = wall;
    this.#span = span;
  }

  /** From here on only what is known by now counts. */
  leave(): void {
    const { news } = this;
    this.news = undefined;
    news?.leave();
  }

  get #wallElapsed(): number {
    return this.clock.wall() - this.#wall;
  }
}
