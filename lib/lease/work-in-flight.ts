import type { Agenda } from './agenda.js';
import type { Lease } from './lease.js';
import { Roster, type Seated } from './roster.js';

/** Work that runs under a lease. */
export class Work implements Seated {
  seat = -1;

  constructor(readonly lease: Lease) {}

  get isOver(): boolean {
    return this.seat < 0;
  }
}

/** The work that runs under leases now: what a shutdown waits for (rule 11). */
export class WorkInFlight {
  readonly #works = new Roster<Work>();
  readonly #onEnded = new Set<() => void>();

  constructor(private readonly agenda: Agenda) {}

  get leases(): readonly Lease[] {
    return [...new Set([...this.#works].map(({ lease }) => lease))];
  }

  get size(): number {
    return this.#works.size;
  }

  begin(lease: Lease): Work {
    const work = new Work(lease);
    this.#works.add(work);
    return work;
  }

  end(work: Work): void {
    this.#works.delete(work);
    if (this.#onEnded.size > 0) for (const look of this.#onEnded) look();
  }

  /** Waits until what is in flight now has ended, at most for `ms`; says whether it has. */
  async idle(ms: number): Promise<boolean> {
    const inFlight = [...this.#works];
    const isOver = (): boolean => inFlight.every((work) => work.isOver);
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
