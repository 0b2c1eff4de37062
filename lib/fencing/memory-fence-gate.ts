import type { Duration } from '../lease/duration.js';
import { FenceGate, type Mark } from './fence-gate.js';
import { Retention } from './retention.js';

const SWEEP_AT_LEAST = 1_000;

/**
 * Marks in the memory of this process: for tests, for development, and for what lives in this process itself. It
 * forgets all of them when the process ends, and so guards no storage that does not.
 *
 * @publicApi
 */
export class MemoryFenceGate extends FenceGate {
  readonly #marks = new Map<string, { readonly fence: number; readonly forgetAt: number }>();
  readonly #retention: Retention;
  readonly #wall: () => number;
  #sweepAt = SWEEP_AT_LEAST;

  /** @param options - `retention`: for how long a mark is kept; `wall`: the time in ms, for tests that own it */
  constructor(options: { retention?: Duration; wall?: () => number } = {}) {
    super();
    this.#retention = new Retention(options.retention);
    this.#wall = options.wall ?? Date.now;
  }

  /** How many resources are remembered. */
  get size(): number {
    return this.#marks.size;
  }

  /** Forgets what nobody has written to for the retention, and says how many. It happens by itself, now and then. */
  async retire(): Promise<number> {
    return this.#retireAt(Math.floor(this.#wall() * 1_000));
  }

  protected async raise(resource: string, fence: number): Promise<Mark> {
    const now = Math.floor(this.#wall() * 1_000);
    this.#sweepNowAndThen(now);
    const mark = this.#marks.get(resource);
    const highest = mark?.fence ?? this.#retention.floorAt(now);
    if (fence < highest) return { highest, isFloor: mark === undefined };
    const forgetAt = Math.max(mark?.forgetAt ?? 0, this.#retention.forgetAt(now, fence));
    this.#marks.set(resource, { fence, forgetAt });
    return { highest: fence };
  }

  /** When there are twice as many as after the last time: a share of each admission, and no timer. */
  #sweepNowAndThen(now: number): void {
    if (this.#marks.size < this.#sweepAt) return;
    this.#retireAt(now);
    this.#sweepAt = Math.max(SWEEP_AT_LEAST, this.#marks.size * 2);
  }

  #retireAt(now: number): number {
    const before = this.#marks.size;
    for (const [resource, { forgetAt }] of this.#marks) {
      if (forgetAt < now) this.#marks.delete(resource);
    }
    return before - this.#marks.size;
  }
}
