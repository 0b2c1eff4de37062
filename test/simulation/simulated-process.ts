import type { Clock } from '../../lib/lease/clock.js';
import type { Chance } from './chance.js';
import type { Happening, Timeline } from './timeline.js';

interface Timer {
  readonly due: number;
  readonly run: () => void;
  happening: Happening | undefined;
}

const WALL_START = Date.UTC(2026, 0, 1);
/** How late a timer or a message may be for an event loop that has nothing else to do. */
const LAG = 1;

/**
 * A process with its own idea of the time: a monotonic clock with an offset and a rate, a wall clock that can be
 * set, and sleeps in which nothing runs. Paused (SIGSTOP, a blocked event loop): its clocks go on. Suspended (the
 * lid is closed): the monotonic clock stands still too.
 */
export class SimulatedProcess implements Clock {
  readonly #timers = new Set<Timer>();
  #inbox: (() => void)[] = [];
  #wallStep: number;
  #asleepSince: number | undefined;
  #suspendedSince: number | undefined;
  #suspendedFor = 0;
  #sleptFor = 0;
  #wakeUp: Happening | undefined;
  crashed = false;
  /** Real time of the last awakening, and from when on loss must be told in time again. */
  wokeAt = -Infinity;
  wasSuspended = false;
  onWake: () => void = () => {};

  constructor(
    readonly index: number,
    private readonly timeline: Timeline,
    private readonly chance: Chance,
    readonly rate: number,
    private readonly offset: number,
  ) {
    this.#wallStep = chance.between(-5_000, 5_000);
  }

  now(): number {
    const until = this.#suspendedSince ?? this.timeline.now;
    return this.offset + this.rate * (until - this.#suspendedFor);
  }

  wall(): number {
    return WALL_START + this.#wallStep + this.rate * this.timeline.now;
  }

  /** Real milliseconds in which it was awake. */
  get awakeFor(): number {
    return (this.#asleepSince ?? this.timeline.now) - this.#sleptFor;
  }

  get isAwake(): boolean {
    return this.#asleepSince === undefined;
  }

  setTimer(run: () => void, ms: number): unknown {
    const timer: Timer = { due: this.now() + ms, run, happening: undefined };
    this.#timers.add(timer);
    this.#arm(timer);
    return timer;
  }

  clearTimer(handle: unknown): void {
    const timer = handle as Timer | undefined;
    if (timer === undefined || !this.#timers.delete(timer)) return;
    if (timer.happening) timer.happening.cancelled = true;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.setTimer(resolve, ms));
  }

  /** Something from outside reaches it: now, or when it wakes. */
  deliver(run: () => void): void {
    if (this.crashed) return;
    if (this.isAwake) run();
    else this.#inbox.push(run);
  }

  pause(ms: number): void {
    this.#fallAsleep(ms);
  }

  suspend(ms: number): void {
    if (!this.#fallAsleep(ms)) return;
    this.#suspendedSince = this.timeline.now;
    this.wasSuspended = true;
  }

  stepWall(ms: number): void {
    this.#wallStep += ms;
  }

  crash(): void {
    this.crashed = true;
    this.#asleepSince ??= this.timeline.now;
    if (this.#wakeUp) this.#wakeUp.cancelled = true;
    for (const timer of this.#timers) this.clearTimer(timer);
    this.#inbox = [];
  }

  wake(): void {
    if (this.crashed || this.#asleepSince === undefined) return;
    if (this.#wakeUp) this.#wakeUp.cancelled = true;
    this.#sleptFor += this.timeline.now - this.#asleepSince;
    this.#asleepSince = undefined;
    if (this.#suspendedSince !== undefined) {
      this.#suspendedFor += this.timeline.now - this.#suspendedSince;
      this.#suspendedSince = undefined;
    }
    this.wokeAt = this.timeline.now;
    // Whether a timer or a message has its turn first is up to chance; messages keep their order.
    const inbox = this.#inbox;
    this.#inbox = [];
    let lag = 0;
    for (const run of inbox) {
      lag += this.chance.between(0, LAG / inbox.length);
      this.timeline.after(lag, () => this.deliver(run));
    }
    for (const timer of this.#timers) this.#arm(timer);
    this.onWake();
  }

  #fallAsleep(ms: number): boolean {
    if (!this.isAwake || this.crashed) return false;
    this.#asleepSince = this.timeline.now;
    this.wasSuspended = false;
    this.#wakeUp = this.timeline.after(ms, () => this.wake());
    return true;
  }

  #arm(timer: Timer): void {
    if (timer.happening) timer.happening.cancelled = true;
    const ms = Math.max(0, timer.due - this.now()) / this.rate + this.chance.between(0, LAG);
    timer.happening = this.timeline.after(ms, () => {
      // Asleep: armed anew on waking.
      if (!this.isAwake) return;
      this.#timers.delete(timer);
      timer.run();
    });
  }
}
