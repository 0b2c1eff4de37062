import { setTimeout as sleep } from 'node:timers/promises';
import { ETCD_NO_WATCH } from '../../lease.messages.js';
import { headerOf, integerOf, listOf, objectOf } from './etcd-answers.js';
import { resultOf, type EtcdClient, type Listening } from './etcd-client.js';
import type { EtcdNames } from './etcd-names.js';

const OPEN_WITHIN = 2_000;
/** Who waits for one key after the other need not open a connection for each. */
const IDLE = 10_000;
const AGAIN_FIRST = 50;
const AGAIN_AT_MOST = 2_000;

/**
 * Tells of keys that may have become free, by one connection for all of them; two for a moment when more are watched,
 * because a stream cannot be asked for more while it runs. One that broke goes on from the last revision that was heard
 * of, so that nothing is missed.
 */
export class EtcdWatch {
  readonly #client: EtcdClient;
  readonly #names: EtcdNames;
  readonly #listeners = new Map<string, Set<() => void>>();
  #current: WatchStream | undefined;
  #opening: Promise<void> | undefined;
  /** The last revision that was heard of. */
  #heard: number | undefined;
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
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) {
        this.#listeners.delete(key);
      }
      if (this.#listeners.size === 0) this.#dropWhenIdle();
    };
    try {
      const { signal } = this.#life;
      while (!this.#current?.covers(key)) {
        await (this.#opening ??= this.#open(signal).finally(() => (this.#opening = undefined)));
      }
      return stop;
    } catch (error) {
      await stop();
      throw error;
    }
  }

  /** A member that does not answer others does not tell us anything either. */
  doubt(endpoint: URL): void {
    if (this.#current?.endpoint === endpoint) this.#current.hangUp();
  }

  close(): void {
    clearTimeout(this.#idle);
    this.#life.abort();
    this.#life = new AbortController();
    this.#listeners.clear();
    this.#drop();
  }

  #dropWhenIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#drop(), IDLE).unref();
  }

  #drop(): void {
    const current = this.#current;
    this.#current = undefined;
    this.#heard = undefined;
    current?.hangUp();
  }

  /** @param from - the revision to go on from */
  async #open(signal: AbortSignal, from?: number): Promise<void> {
    // Those who come in the same moment share it.
    await Promise.resolve();
    const keys = [...this.#listeners.keys()];
    const next = new WatchStream(keys, {
      heard: (revision) => (this.#heard = Math.max(this.#heard ?? 0, revision)),
      free: (key) => this.#tell(key),
      compacted: () => this.#missed(),
      ended: () => this.#ended(next, signal),
    });
    await next.open(this.#client, this.#names, from);
    if (signal.aborted || this.#listeners.size === 0) return next.hangUp();
    const last = this.#current;
    this.#current = next;
    last?.hangUp();
  }

  #tell(key: string): void {
    for (const listener of this.#listeners.get(key) ?? []) listener();
  }

  /** What happened in between is not known any more: everything may have. */
  #missed(): void {
    this.#heard = undefined;
    for (const key of [...this.#listeners.keys()]) this.#tell(key);
  }

  #ended(stream: WatchStream, signal: AbortSignal): void {
    if (this.#current !== stream) return;
    this.#current = undefined;
    if (signal.aborted || this.#listeners.size === 0) return;
    void this.#again(signal).catch(() => {});
  }

  async #again(signal: AbortSignal): Promise<void> {
    for (let pause = AGAIN_FIRST; ; pause = Math.min(2 * pause, AGAIN_AT_MOST)) {
      await sleep(pause, undefined, { ref: false, signal });
      if (this.#listeners.size === 0 || this.#current !== undefined) return;
      const from = this.#heard === undefined ? undefined : this.#heard + 1;
      const opening = (this.#opening ??= this.#open(signal, from).finally(
        () => (this.#opening = undefined),
      ));
      await opening.catch(() => {});
    }
  }
}

interface Told {
  heard(revision: number): void;
  free(key: string): void;
  compacted(): void;
  ended(): void;
}

/** One connection, for the keys that it was opened for. */
class WatchStream {
  readonly #keys: readonly string[];
  readonly #covered: ReadonlySet<string>;
  readonly #told: Told;
  #listening: Listening | undefined;
  #created = 0;
  #isOver = false;

  constructor(keys: readonly string[], told: Told) {
    this.#keys = keys;
    this.#covered = new Set(keys);
    this.#told = told;
  }

  get endpoint(): URL | undefined {
    return this.#listening?.endpoint;
  }

  covers(key: string): boolean {
    return this.#covered.has(key);
  }

  hangUp(): void {
    this.#isOver = true;
    this.#listening?.hangUp();
  }

  /** Resolves when the server watches all keys. */
  async open(client: EtcdClient, names: EtcdNames, from: number | undefined): Promise<void> {
    const start = from === undefined ? {} : { start_revision: `${from}` };
    const requests = this.#keys.map((key, i) => ({
      create_request: {
        ...names.holders(key),
        ...start,
        filters: ['NOPUT'],
        watch_id: `${i + 1}`,
      },
    }));
    const until = performance.now() + OPEN_WITHIN;
    await new Promise<void>((resolve, reject) => {
      const onEnd = (cause: unknown): void => {
        clearTimeout(limit);
        this.#isOver = true;
        // It may be that it does not know the token any more.
        client.forgetToken();
        if (this.#listening !== undefined) client.blame(this.#listening.endpoint);
        reject(new Error(ETCD_NO_WATCH(), { cause }));
        this.#told.ended();
      };
      const onLine = (line: string): void => {
        try {
          this.#read(line);
        } catch (error) {
          this.#listening?.hangUp();
          return onEnd(error);
        }
        if (this.#created < this.#keys.length) return;
        clearTimeout(limit);
        resolve();
      };
      const limit = setTimeout(() => {
        this.#listening?.hangUp();
        reject(new Error(ETCD_NO_WATCH()));
      }, OPEN_WITHIN).unref();
      client.stream('v3/watch', requests, { onLine, onEnd }, until).then((listening) => {
        this.#listening = listening;
        if (this.#isOver) listening.hangUp();
      }, onEnd);
    });
  }

  #read(line: string): void {
    const answer = objectOf(resultOf(line));
    const { revision } = headerOf(answer);
    if (answer['canceled'] === true) {
      if (integerOf(answer['compact_revision']) > 0) this.#told.compacted();
      throw new Error(ETCD_NO_WATCH());
    }
    if (answer['created'] === true) this.#created++;
    const events = listOf(answer['events']);
    if (events.length > 0) {
      const key = this.#keys[integerOf(answer['watch_id']) - 1];
      if (key !== undefined) this.#told.free(key);
    }
    this.#told.heard(revision);
  }
}
