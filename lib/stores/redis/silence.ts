import type { Redis } from 'ioredis';

/**
 * Notices a server that owes an answer and says nothing: without it a half-open socket is never closed. In place of
 * ioredis' own `socketTimeout`, whose timer and listener for every command cost a tenth of a round trip.
 */
export class Silence {
  #owed = 0;
  #answers = 0;

  get isOwed(): boolean {
    return this.#owed > 0;
  }

  /** How many there were. */
  get answers(): number {
    return this.#answers;
  }

  asked(): void {
    this.#owed++;
  }

  answered(): void {
    this.#owed--;
    this.#answers++;
  }

  /** Counts a request until it settles. */
  async during<T>(request: Promise<T>): Promise<T> {
    this.asked();
    try {
      return await request;
    } finally {
      this.answered();
    }
  }

  /** Of a connection that has not been opened yet: its `socketTimeout` is ours from now on. */
  watch(client: Redis): Redis {
    const { socketTimeout } = client.options;
    delete client.options.socketTimeout;
    if (socketTimeout === undefined) return client;
    let timer: NodeJS.Timeout | undefined;
    const lookOften = (isSilent: () => boolean): void => {
      clearInterval(timer);
      let since = performance.now();
      let seen = this.#answers;
      const look = (): void => {
        const now = performance.now();
        if (!isSilent() || this.#answers !== seen) {
          seen = this.#answers;
          since = now;
        } else if (now - since >= socketTimeout) {
          client.disconnect(true);
        }
      };
      timer = setInterval(look, Math.max(socketTimeout / 4, 1)).unref();
    };
    // What ioredis asks for itself before it is ready is owed too.
    client.on('connect', () => lookOften(() => true));
    client.on('ready', () => lookOften(() => this.#owed > 0));
    client.on('close', () => clearInterval(timer));
    return client;
  }
}
