/** What was begun and has not ended: a shutdown waits for all of it. */
export class UnderWay {
  #count = 0;
  #onNone: (() => void)[] = [];

  begin(): void {
    this.#count++;
  }

  end(): void {
    if (--this.#count > 0 || this.#onNone.length === 0) return;
    for (const tell of this.#onNone.splice(0)) tell();
  }

  /** Counts `begun` until it settles. Its outcome is its caller's. */
  add<T>(begun: Promise<T>): Promise<T> {
    this.begin();
    const end = (): void => this.end();
    begun.then(end, end);
    return begun;
  }

  /** Until nothing is under way, what is begun meanwhile included. */
  async over(): Promise<void> {
    while (this.#count > 0) await new Promise<void>((resolve) => this.#onNone.push(resolve));
  }
}
