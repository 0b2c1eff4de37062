import { ETCD_NO_WATCH } from '../../lease.messages.js';
import { headerOf, integerOf, listOf, objectOf } from './etcd-answers.js';
import { resultOf, type EtcdClient, type Listening } from './etcd-client.js';
import type { EtcdNames } from './etcd-names.js';

const OPEN_WITHIN = 2_000;

/** Who is told what a stream tells. */
export interface Told {
  /** The last revision that was heard of for a key. */
  heard(key: string, revision: number): void;
  free(key: string): void;
  /** What happened before this revision is not known any more. */
  missed(known: number): void;
  /** It ended by itself. */
  broke(): void;
}

/** One connection, for the keys that it was opened for. */
export class EtcdWatchStream {
  readonly #keys: readonly string[];
  readonly #covered: ReadonlySet<string>;
  readonly #told: Told;
  #listening: Listening | undefined;
  #isOver = false;
  #created = 0;
  #settled: { opened(): void; failed(error: unknown): void } | undefined;

  constructor(keys: readonly string[], told: Told) {
    this.#keys = keys;
    this.#covered = new Set(keys);
    this.#told = told;
  }

  get endpoint(): URL | undefined {
    return this.#listening?.endpoint;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  covers(key: string): boolean {
    return this.#covered.has(key);
  }

  /**
   * Resolves when the server watches all keys.
   * @param since - the revisions to go on from, of keys that were watched before
   */
  async open(
    client: EtcdClient,
    names: EtcdNames,
    since: ReadonlyMap<string, number>,
  ): Promise<void> {
    const requests = this.#keys.map((key, i) => {
      const last = since.get(key);
      const start = last === undefined ? {} : { start_revision: `${last + 1}` };
      const watch = { filters: ['NOPUT'], watch_id: `${i + 1}`, ...start };
      return { create_request: { ...names.holders(key), ...watch } };
    });
    const opened = new Promise<void>((resolve, reject) => {
      this.#settled = { opened: resolve, failed: reject };
    });
    // It may fail while nobody waits for it yet (rule 12).
    opened.catch(() => {});
    const limit = setTimeout(() => this.break(), OPEN_WITHIN).unref();
    const onLine = (line: string): void => {
      try {
        this.#read(line, since);
      } catch (error) {
        this.break(error);
      }
    };
    const onEnd = (error: unknown): void => {
      if (this.#isOver) return;
      // It may be that it does not know the token any more.
      client.forgetToken();
      if (this.endpoint !== undefined) client.blame(this.endpoint);
      this.break(error);
    };
    try {
      const until = performance.now() + OPEN_WITHIN;
      this.#listening = await client.stream('v3/watch', requests, { onLine, onEnd }, until);
      if (this.#isOver) this.#listening.hangUp();
    } catch (error) {
      this.break(error);
    }
    await opened.finally(() => clearTimeout(limit));
  }

  /** Quietly. */
  hangUp(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listening?.hangUp();
    this.#settled?.failed(new Error(ETCD_NO_WATCH()));
  }

  /** As if the connection had. */
  break(cause?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listening?.hangUp();
    this.#settled?.failed(new Error(ETCD_NO_WATCH(), { cause }));
    this.#told.broke();
  }

  #read(line: string, since: ReadonlyMap<string, number>): void {
    const answer = objectOf(resultOf(line));
    // Its header has no revision.
    if (answer['canceled'] === true) {
      const known = integerOf(answer['compact_revision']);
      if (known > 0) this.#told.missed(known);
      throw new Error(ETCD_NO_WATCH());
    }
    const { revision } = headerOf(answer);
    const key = this.#keys[integerOf(answer['watch_id']) - 1];
    if (key === undefined) throw new Error(ETCD_NO_WATCH());
    if (answer['created'] === true) {
      // Of one that goes on, what happened meanwhile is still to come.
      if (!since.has(key)) this.#told.heard(key, revision);
      if (++this.#created === this.#keys.length) this.#settled?.opened();
    }
    const events = listOf(answer['events']).map((event) => objectOf(objectOf(event)['kv']));
    if (events.length === 0) return;
    this.#told.heard(key, Math.max(...events.map((kv) => integerOf(kv['mod_revision']))));
    this.#told.free(key);
  }
}
