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
 * Tells of keys that may have become free, by one connection for all of them. One that broke goes on from the last
 * revision that was heard of, so that nothing is missed in between.
 */
export class EtcdWatch {
  readonly #client: EtcdClient;
  readonly #names: EtcdNames;
  readonly #listeners = new Map<string, Set<() => void>>();
  #heard: number | undefined;
  #current: EtcdWatchStream | undefined;
  #next: EtcdWatchStream | undefined;
  #opening: Promise<void> | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** Before it is tried again, and until when one must last to be worth a quick try. */
  #pause = AGAIN_FIRST;
  #provenAt = 0;
  /** The life in which it is being tried again. */
  #mending: AbortSignal | undefined;
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
      await this.#untilOpen(this.#life.signal);
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

  async #untilOpen(signal: AbortSignal): Promise<void> {
    if (this.#current !== undefined) return;
    await this.#open();
    // Of one that was cut off at once it is told when the next one goes on.
    if (signal.aborted) throw new Error(ETCD_CLOSED());
  }

  #dropWhenIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#drop(), IDLE).unref();
  }

  #drop(): void {
    clearTimeout(this.#idle);
    const streams = [this.#current, this.#next];
    this.#current = undefined;
    this.#heard = undefined;
    for (const stream of streams) stream?.hangUp();
  }

  /** One for all who ask meanwhile. */
  #open(): Promise<void> {
    return (this.#opening ??= this.#openNext().finally(() => {
      this.#opening = undefined;
      this.#next = undefined;
    }));
  }

  async #openNext(): Promise<void> {
    const next = new EtcdWatchStream({
      heard: (revision) => (this.#heard = revision),
      gone: (name) => this.#tell(this.#names.keyOf(name)),
      missed: (known) => this.#missed(known),
      broke: () => this.#broke(next),
    });
    this.#next = next;
    await next.open(this.#client, this.#names, this.#heard);
    this.#current = next;
    this.#provenAt = performance.now() + AGAIN_AT_MOST;
    // In the same moment, before it was the current one.
    if (next.isOver) this.#broke(next);
  }

  #tell(key: string | undefined): void {
    if (key === undefined) return;
    for (const listener of this.#listeners.get(key) ?? []) listener();
  }

  /** Everything may have happened, and goes on from there. */
  #missed(known: number): void {
    this.#heard = known - 1;
    for (const key of this.#listeners.keys()) this.#tell(key);
  }

  #broke(stream: EtcdWatchStream): void {
    if (this.#current !== stream) return;
    this.#current = undefined;
    if (performance.now() >= this.#provenAt) this.#pause = AGAIN_FIRST;
    const { signal } = this.#life;
    if (this.#mending !== signal) void this.#again(signal).catch(() => {});
  }

  async #again(signal: AbortSignal): Promise<void> {
    this.#mending = signal;
    try {
      do {
        await sleep(this.#pause, undefined, { ref: false, signal });
        this.#pause = Math.min(2 * this.#pause, AGAIN_AT_MOST);
        if (this.#listeners.size > 0 && this.#current === undefined) {
          await this.#open().catch(() => {});
        }
      } while (this.#listeners.size > 0 && this.#current === undefined);
    } finally {
      if (this.#mending === signal) this.#mending = undefined;
    }
  }
}
