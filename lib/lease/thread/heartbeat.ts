/**
 * The sign of life of the thread that works, for the one that renews: without it, a process that hangs for ever
 * would hold its leases for ever.
 */
export class Heartbeat {
  readonly #word: Int32Array;

  /** @param now - milliseconds of shared time */
  constructor(
    private readonly now: () => number,
    readonly memory = new SharedArrayBuffer(4),
  ) {
    this.#word = new Int32Array(memory);
  }

  beat(): void {
    Atomics.store(this.#word, 0, Math.floor(this.now() % 2 ** 32) | 0);
  }

  /** Milliseconds since the last beat. Counts round after 49 days: by then all that was held is long over. */
  get age(): number {
    // In this order: a beat in between must not lie in the future.
    const last = Atomics.load(this.#word, 0);
    return (Math.floor(this.now() % 2 ** 32) - last) >>> 0;
  }
}
