import { systemClock, type Clock } from '../../lease/clock.js';

/** How often a process that takes leases looks for rows that are to be forgotten. */
const EVERY = 300_000;
const AT_ONCE = 1_000;

/**
 * Forgets what nobody needs any more, a little at a time, on the occasion of a grant: a table that nobody writes to does
 * not grow, and so there is no timer.
 */
export class Sweeper {
  #next: number;

  /** @param sweep - forgets so many at most, and says how many it were */
  constructor(
    private readonly sweep: (atMost: number) => Promise<number>,
    private readonly clock: Pick<Clock, 'now'> = systemClock,
    random = Math.random,
  ) {
    // Not all processes of a deployment in the same moment.
    this.#next = clock.now() + EVERY * random();
  }

  /** In the background: nobody waits for it, and nobody is told that it failed (rule 12). */
  now(): void {
    const now = this.clock.now();
    if (now < this.#next) return;
    this.#next = now + EVERY;
    void this.#sweepQuietly();
  }

  async #sweepQuietly(): Promise<void> {
    try {
      // There is more where those came from.
      if ((await this.sweep(AT_ONCE)) >= AT_ONCE) this.#next = 0;
    } catch {
      // The next one will.
    }
  }
}
