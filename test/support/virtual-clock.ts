import type { Clock } from '../../lib/lease/clock.js';

interface Timer {
  readonly due: number;
  readonly order: number;
  readonly run: () => void;
}

/** Lets everything that is waiting for nothing but its turn have it. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Time that passes only when told to. */
export class VirtualClock implements Clock {
  #now = 1_000;
  #wallOffset = Date.UTC(2026, 0, 1);
  #order = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wallOffset + this.#now;
  }

  setTimer(run: () => void, ms: number): unknown {
    const timer: Timer = { due: this.#now + ms, order: this.#order++, run };
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(timer: unknown): void {
    this.#timers.delete(timer as Timer);
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Time passes; every timer fires at its time, and what follows from it happens before the next. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const next = [...this.#timers]
        .filter((timer) => timer.due <= end)
        .toSorted((a, b) => a.due - b.due || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.due);
      next.run();
      await settle();
    }
    this.#now = Math.max(this.#now, end);
    await settle();
  }

  /** The event loop was blocked, or the process stopped: time passed, and no timer had its turn yet. */
  freeze(ms: number): void {
    this.#now += ms;
  }

  /** The machine was suspended: the wall clock went on, the monotonic one did not. */
  suspend(ms: number): void {
    this.#wallOffset += ms;
  }

  /** Somebody set the wall clock. */
  stepWall(ms: number): void {
    this.#wallOffset += ms;
  }
}
