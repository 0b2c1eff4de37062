import { setTimeout as sleep } from 'node:timers/promises';
import { ETCD_CLOSED } from '../../lease.messages.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdNames } from './etcd-names.js';
import { EtcdWatchStream } from './etcd-watch-stream.js';

/** Who waits for one key after the other need not open a connection for each. */
const IDLE = 10_000;
const AGAIN_FIRST = 50;
const AGAIN_AT_MOST = 2_000;

/**
 * Tells of keys that may have become free, by one connection for all of them; two for a moment when another is watched,
 * because a stream cannot be asked for more while it runs. The next one goes on from the last revision that was heard
 * of, so that nothing is missed in between.
 */
export class EtcdWatch {
  readonly #client: EtcdClient;
  readonly #names: EtcdNames;
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #heard = new Map<string, number>();
  #current: EtcdWatchStream | undefined;
  #next: EtcdWatchStream | undefined;
  #opening: Promise<void> | undefined;
  #idle: NodeJS.Timeout | undefined;
  #life = new AbortController();

  constructor(client: EtcdClient, names: EtcdNames) {
    this.#client = client;
    this.#names = names;
  }

  async watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    clearTimeout(this.#idle);
    // A function of its own: the same callback may watch twice.
    const listener = (): void => onFree();
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    const stop = async (): Promise<void> => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(key) !== listeners) return;
      this.#listeners.delete(key);
      if (this.#listeners.size === 0) this.#dropWhenIdle();
    };
    try {
      await this.#untilCovered(key, this.#life.signal);
      return stop;
    } catch (error) {
      await stop();
      throw error;
    }
  }

  /** A member that does not answer others does not tell us anything either. */
  doubt(endpoint: URL): void {
    if (this.#current?.endpoint === endpoint) this.#current.break();
  }

  close(): void {
    this.#life.abort();
    this.#life = new AbortController();
    this.#listeners.clear();
    this.#drop();
  }

  async #untilCovered(key: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      if (signal.aborted) throw new Error(ETCD_CLOSED());
      if (this.#current?.covers(key)) return;
      await this.#open();
    }
  }

  #dropWhenIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#drop(), IDLE).unref();
  }

  #drop(): void {
    clearTimeout(this.#idle);
    const streams = [this.#current, this.#next];
    this.#current = undefined;
    this.#heard.clear();
    for (const stream of streams) stream?.hangUp();
  }

  /** One at a time: who comes while it opens is for the next. */
  #open(): Promise<void> {
    return (this.#opening ??= this.#openNext().finally(() => {
      this.#opening = undefined;
      this.#next = undefined;
    }));
  }

  async #openNext(): Promise<void> {
    // Those who come in the same moment share it.
    await Promise.resolve();
    for (const key of this.#heard.keys()) if (!this.#listeners.has(key)) this.#heard.delete(key);
    const next = new EtcdWatchStream([...this.#listeners.keys()], {
      heard: (key, revision) => void this.#heard.set(key, revision),
      free: (key) => this.#tell(key),
      missed: (known) => this.#missed(known),
      broke: () => this.#broke(next),
    });
    this.#next = next;
    await next.open(this.#client, this.#names, new Map(this.#heard));
    const last = this.#current;
    this.#current = next;
    last?.hangUp();
    // In the same moment, before it was the current one.
    if (next.isOver) this.#broke(next);
  }

  #tell(key: string): void {
    for (const listener of this.#listeners.get(key) ?? []) listener();
  }

  /** Everything may have happened, and goes on from there. */
  #missed(known: number): void {
    for (const key of this.#listeners.keys()) {
      this.#heard.set(key, known - 1);
      this.#tell(key);
    }
  }

  #broke(stream: EtcdWatchStream): void {
    if (this.#current !== stream) return;
    this.#current = undefined;
    void this.#again(this.#life.signal).catch(() => {});
  }

  async #again(signal: AbortSignal): Promise<void> {
    for (let pause = AGAIN_FIRST; ; pause = Math.min(2 * pause, AGAIN_AT_MOST)) {
      await sleep(pause, undefined, { ref: false, signal });
      if (this.#listeners.size === 0 || this.#current !== undefined) return;
      await this.#open().catch(() => {});
    }
  }
}
