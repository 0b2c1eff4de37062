/**
 * The time a lease lives by. The engine never reads a clock or sets a timer in another way, so that a
 * simulation can own time.
 *
 * @publicApi
 */
export interface Clock {
  /** Monotonic milliseconds, with fractions. May stand still while the machine is suspended. */
  now(): number;
  /** Wall-clock milliseconds since 1970. May jump. */
  wall(): number;
  setTimer(run: () => void, ms: number): unknown;
  clearTimer(timer: unknown): void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  // rule 12: a timer of the library keeps no process alive on its own
  setTimer: (run, ms) => setTimeout(run, ms).unref(),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout),
};
