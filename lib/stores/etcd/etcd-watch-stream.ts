import { ETCD_NO_WATCH } from '../../lease.messages.js';
import { bytesOf, headerOf, integerOf, listOf, objectOf } from './etcd-answers.js';
import { resultOf, type EtcdClient, type Listening } from './etcd-client.js';
import type { EtcdNames } from './etcd-names.js';

const OPEN_WITHIN = 2_000;

/** Who is told what a stream tells. */
export interface Told {
  /** The last revision that was heard of. */
  heard(revision: number): void;
  /** A name of a holder is gone. */
  gone(name: Buffer): void;
  /** What happened before this revision is not known any more. */
  missed(known: number): void;
  /** It ended by itself. */
  broke(): void;
}

/** One connection, which tells of every holder that is gone. A stream cannot be asked for more while it runs. */
export class EtcdWatchStream {
  readonly #told: Told;
  #listening: Listening | undefined;
  #isOver = false;
  #settled: { opened(): void; failed(error: unknown): void } | undefined;

  constructor(told: Told) {
    this.#told = told;
  }

  get endpoint(): URL | undefined {
    return this.#listening?.endpoint;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Resolves when the server watches.
   * @param since - the revision to go on from
   */
  async open(client: EtcdClient, names: EtcdNames, since: number | undefined): Promise<void> {
    const start = since === undefined ? {} : { start_revision: `${since + 1}` };
    const request = { ...names.beginningWith(''), filters: ['NOPUT'], ...start };
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
      this.#listening = await client.stream(
        'v3/watch',
        [{ create_request: request }],
        { onLine, onEnd },
        until,
      );
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

  #read(line: string, since: number | undefined): void {
    const answer = objectOf(resultOf(line));
    // Its header has no revision.
    if (answer['canceled'] === true) {
      const known = integerOf(answer['compact_revision']);
      if (known > 0) this.#told.missed(known);
      throw new Error(ETCD_NO_WATCH());
    }
    const { revision } = headerOf(answer);
    if (answer['created'] === true) {
      // Of one that goes on, what happened meanwhile is still to come.
      if (since === undefined) this.#told.heard(revision);
      // It has lost data, or is behind: what it counts from there would not be told before it has caught up.
      if (since !== undefined && revision < since) {
        this.#told.missed(revision + 1);
        throw new Error(ETCD_NO_WATCH());
      }
      this.#settled?.opened();
    }
    for (const event of listOf(answer['events'])) {
      const kv = objectOf(objectOf(event)['kv']);
      this.#told.heard(integerOf(kv['mod_revision']));
      this.#told.gone(bytesOf(kv['key']));
    }
  }
}
