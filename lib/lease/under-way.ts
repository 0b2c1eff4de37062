/** What was begun and has not ended: a shutdown waits for all of it. */
export class UnderWay {
  readonly #all = new Set<Promise<unknown>>();

  /** Counts `begun` until it settles. Its outcome is its caller's. */
  add<T>(begun: Promise<T>): Promise<T> {
    const over: Promise<void> = begun.then(
      () => this.#end(over),
      () => this.#end(over),
    );
    this.#all.add(over);
    return begun;
  }

  /** Until nothing is under way, what is begun meanwhile included. */
  async over(): Promise<void> {
    while (this.#all.size > 0) await Promise.all(this.#all);
  }

  #end(over: Promise<void>): void {
    this.#all.delete(over);
  }
}
