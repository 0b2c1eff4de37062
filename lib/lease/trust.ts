import type { Clock } from './clock.js';

/** What the holder keeps back of every ttl, for what its clock and the store's disagree about. */
export const MARGIN = 1 / 6;

const SLEW = 50;

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
    return this.#mono + this.#span;
  }

  /**
   * Milliseconds left, not above zero when over. A suspended machine stops its monotonic clock but not the
   * store's ttl, so the clock that ran further counts (rule 4).
   */
  get remaining(): number {
    return Math.min(this.endsAt - this.clock.now(), this.#span - this.#wallElapsed);
  }

  /** Why it is over; `undefined` while it is not. */
  get ended(): 'expired' | 'suspended' | undefined {
    const monoLeft = this.endsAt - this.clock.now();
    if (monoLeft <= 0) return 'expired';
    if (this.#wallElapsed < this.#span) return undefined;
    // The wall clock counts whole milliseconds and is slewed now and then: a little ahead is no sleep.
    return monoLeft > SLEW ? 'suspended' : 'expired';
  }

  /** A success that was sent earlier than the last one earns nothing: trust is never shortened by an answer. */
  extend(mono: number, wall: number, ttl: number): void {
    const span = trustedSpan(ttl);
    if (mono + span <= this.endsAt) return;
    this.#mono = mono;
    this.#wall = wall;
    this.#span = span;
  }

  get #wallElapsed(): number {
    return this.clock.wall() - this.#wall;
  }
}
