import type { Agenda } from './agenda.js';
import type { Lease } from './lease.js';

/** The leases that work runs under now: what a shutdown waits for (rule 11). */
export class WorkInFlight {
  readonly #leases = new Set<Lease>();
  readonly #onEnded = new Set<() => void>();

  constructor(private readonly agenda: Agenda) {}

  get leases(): readonly Lease[] {
    return [...this.#leases];
  }

  has(lease: Lease): boolean {
    return this.#leases.has(lease);
  }

  begin(lease: Lease): void {
    this.#leases.add(lease);
  }

  end(lease: Lease): void {
    this.#leases.delete(lease);
    if (this.#onEnded.size > 0) for (const look of this.#onEnded) look();
  }

  /** Waits until what is in flight now has ended, at most for `ms`; says whether it has. */
  async idle(ms: number): Promise<boolean> {
    const inFlight = this.leases;
    const isOver = (): boolean => inFlight.every((lease) => !this.#leases.has(lease));
    if (isOver()) return true;
    await new Promise<void>((resolve) => {
      const limit = this.agenda.after(ms, () => end());
      const look = (): void => {
        if (isOver()) end();
      };
      const end = (): void => {
        this.agenda.cancel(limit);
        this.#onEnded.delete(look);
        resolve();
      };
      this.#onEnded.add(look);
    });
    return isOver();
  }
}
