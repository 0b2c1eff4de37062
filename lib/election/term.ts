import type { LeaseEngine } from '../lease/lease-engine.js';
import type { Lease } from '../lease/lease.js';

/** One time of leading, from election to its end: the lease it is led by, and the work that runs under it. */
export class Term {
  /** Set from the moment on at which it is given up of its own will; resolves when it is given to the next. */
  steppingDown: Promise<void> | undefined;
  isDeposed = false;

  readonly #engine: LeaseEngine;
  readonly #onDrained = new Set<() => void>();
  #runs = 0;

  constructor(
    readonly lease: Lease,
    engine: LeaseEngine,
  ) {
    this.#engine = engine;
  }

  /** Looks at the clock (rule 4). */
  get isLeading(): boolean {
    return this.steppingDown === undefined && this.lease.isHeld;
  }

  get isLost(): boolean {
    return this.lease.holdings.some((holding) => holding.state === 'lost');
  }

  /** Whether the code that asks is itself work of this term. */
  get isAround(): boolean {
    return this.lease.holdings.some(
      (holding) => this.#engine.scope.find(holding.hold.key) === holding,
    );
  }

  async run<T>(work: (lease: Lease) => T | Promise<T>): Promise<T> {
    const handle = this.#engine.enter(this.lease);
    this.#runs++;
    try {
      return await this.#engine.runIn(handle, () => work(handle));
    } finally {
      this.#runs--;
      if (this.#runs === 0) for (const tell of this.#onDrained) tell();
    }
  }

  /** Tells the work to stop, while the lease is still renewed (rule 11). */
  abort(reason: unknown): void {
    for (const holding of this.lease.holdings) holding.abort(reason);
  }

  /** Waits until no work is in flight, at most for `ms`; says whether that is so. */
  drained(ms = Infinity): Promise<boolean> {
    if (this.#runs === 0) return Promise.resolve(true);
    const { agenda } = this.#engine;
    return new Promise((resolve) => {
      const end = (isDrained: boolean): void => {
        this.#onDrained.delete(onDrained);
        if (limit !== undefined) agenda.cancel(limit);
        resolve(isDrained);
      };
      const onDrained = (): void => end(true);
      const limit = ms === Infinity ? undefined : agenda.after(ms, () => end(false));
      this.#onDrained.add(onDrained);
    });
  }
}
