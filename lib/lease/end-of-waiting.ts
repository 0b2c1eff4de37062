import type { Roster, Seated } from './roster.js';

/** What ends a wait before its time: the caller's signal, or a shutdown. */
export class EndOfWaiting implements Seated {
  seat = -1;
  #isReached = false;
  /** Called when it is reached. */
  onReached: (() => void) | undefined;

  /** @param all - those that a shutdown ends */
  constructor(
    private readonly signal: AbortSignal | undefined,
    private readonly all: Roster<EndOfWaiting>,
  ) {
    all.add(this);
    signal?.addEventListener('abort', this, { once: true });
  }

  get isReached(): boolean {
    return this.#isReached;
  }

  /** For the signal: an object costs less than a function of its own. */
  handleEvent(): void {
    this.reach();
  }

  reach(): void {
    this.#isReached = true;
    this.onReached?.();
  }

  forget(): void {
    this.all.delete(this);
    this.signal?.removeEventListener('abort', this);
  }

  /** What `begin` is told to resolve with, or nothing when the end comes first. */
  before<T>(begin: (resolve: (value: T) => void) => void): Promise<T | undefined> {
    return new Promise<T | undefined>((resolve) => {
      if (this.#isReached) return resolve(undefined);
      // Not written where it is assigned, see Contender.ask.
      const nothing = (): void => resolve(undefined);
      this.onReached = nothing;
      begin(resolve);
    });
  }
}
