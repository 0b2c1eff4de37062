/** In this time two quartzes drift apart by a millisecond or so. */
const FRESH = 10_000;

/**
 * What is known of a server's clock, without comparing it with ours: what it said last, and how long ago by our
 * monotonic clock. Runs behind by the time an answer takes, never ahead, so that a deadline made from it is never
 * too late while the server's clock runs evenly.
 */
export class ServerTime {
  #said: number | undefined;
  #heardAt = 0;
  /** By how much the server's clock is ahead of ours at least: by the fastest of the answers of late. */
  #ahead = -Infinity;
  #aheadHeardAt = 0;

  /** Known, and not from so long ago that two clocks that run evenly could disagree about it. */
  isFreshAt(now: number): boolean {
    return this.#said !== undefined && now - this.#heardAt < FRESH;
  }

  heard(serverMs: number): void {
    if (!Number.isFinite(serverMs)) return;
    const now = performance.now();
    this.#said = serverMs;
    this.#heardAt = now;
    const ahead = serverMs - now;
    if (ahead < this.#ahead && now - this.#aheadHeardAt < FRESH) return;
    this.#ahead = ahead;
    this.#aheadHeardAt = now;
  }

  /** Another server may answer from now on. */
  forget(): void {
    this.#said = undefined;
    this.#ahead = -Infinity;
  }

  /** The millisecond of the server's clock at which ours will not have reached `until` yet: rounded to be early. */
  deadlineAt(until: number): number {
    return Math.floor(this.#said! + until - this.#heardAt);
  }

  /**
   * What the server's clock showed at a moment of ours, as near as can be known: only for who goes first, never for
   * what is held until when.
   */
  at(moment: number): number {
    return moment + this.#ahead;
  }
}
