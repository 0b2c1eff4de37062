/**
 * What is known of a server's clock, without comparing it with ours: what it said last, and how long ago by our
 * monotonic clock. Runs behind by the time an answer takes, never ahead, so that a deadline made from it is never
 * too late while the server's clock runs evenly.
 */
export class ServerTime {
  #said: number | undefined;
  #heardAt = 0;

  get isKnown(): boolean {
    return this.#said !== undefined;
  }

  heard(serverMs: number): void {
    if (!Number.isFinite(serverMs)) return;
    this.#said = serverMs;
    this.#heardAt = performance.now();
  }

  /** Another server may answer from now on. */
  forget(): void {
    this.#said = undefined;
  }

  /** Milliseconds of the server's clock at which `ms` from now will have passed. */
  deadline(ms: number): number {
    return Math.ceil(this.#said! + performance.now() - this.#heardAt + ms);
  }
}
