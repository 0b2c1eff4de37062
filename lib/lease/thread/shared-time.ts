import { systemClock, type Clock } from '../clock.js';

/** Milliseconds of the one monotonic clock that all threads of a process read: `performance.now()` is each one's own. */
const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

/** For a thread that lives by shared time. */
export const sharedClock: Clock = { ...systemClock, now: sharedNow };

/** From shared time to that of another clock and back. */
export class SharedTime {
  readonly #offset: number;

  constructor(
    own: Clock,
    readonly now: () => number = sharedNow,
  ) {
    // In this order: the time between the two looks makes what is translated back too early, never too late (rule 3).
    const at = own.now();
    this.#offset = now() - at;
  }

  toShared(own: number): number {
    return own + this.#offset;
  }

  toOwn(shared: number): number {
    return shared - this.#offset;
  }
}
