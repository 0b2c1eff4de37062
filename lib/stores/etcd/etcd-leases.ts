import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { headerOf, idOf, integerOf, objectOf, UnreadableError } from './etcd-answers.js';
import type { EtcdClient } from './etcd-client.js';
import { Code, EtcdError } from './etcd-error.js';
import { inParallel } from './in-parallel.js';

/** An etcd lease of ours: what is put under it goes with it. */
export interface EtcdLease {
  readonly id: string;
  readonly seconds: number;
}

/** What came of keeping one alive: for how long it was, and the term of the leader that the member knew. */
export interface KeptAlive {
  /** 0: there is none. */
  readonly seconds: number;
  readonly term: number;
}

/** Requests of one stream are to fit in the 512 bytes that a server reads at once: it drops the rest when it answers. */
const STREAM = 16;
const IN_FLIGHT = 4;
const INSIST_WITHIN = 2_000;
const INSIST_AGAIN_FIRST = 50;
const INSIST_AGAIN_AT_MOST = 2_000;
/** Beyond a lease's own time: a new leader begins to count it anew. */
const INSIST_BEYOND = 60_000;

export class EtcdLeases {
  readonly #client: EtcdClient;
  readonly #insisting = new Set<Promise<void>>();
  #closing = closingForMany();

  constructor(client: EtcdClient) {
    this.#client = client;
  }

  /**
   * Under an id of its own for every request that needs one: what is done to one late, be it a revocation, touches
   * no other. A grant that comes twice finds its own. One that is given up may have been executed, so it is ended.
   */
  async grant(seconds: number, until: number): Promise<EtcdLease> {
    const id = freshId();
    const read = (answer: unknown): void => {
      const granted = objectOf(answer);
      // It may be more: a server has a least. Nothing is trusted for longer than was asked for.
      const isOurs = idOf(granted['ID']) === id && integerOf(granted['TTL']) >= seconds;
      if (!isOurs) throw new UnreadableError();
    };
    try {
      await this.#client.ask('v3/lease/grant', { ID: id, TTL: `${seconds}` }, read, until);
    } catch (error) {
      const isThere = error instanceof EtcdError && error.code === Code.failedPrecondition;
      if (!isThere) {
        this.end({ id, seconds });
        throw error;
      }
    }
    return { id, seconds };
  }

  /** One answer for each, in order. */
  async keepAlive(ids: readonly string[], until: number): Promise<readonly KeptAlive[]> {
    const streams: (readonly string[])[] = [];
    for (let i = 0; i < ids.length; i += STREAM) streams.push(ids.slice(i, i + STREAM));
    const kept = await inParallel(streams, IN_FLIGHT, async (some) => {
      const bodies = some.map((ID) => ({ ID }));
      const read = (answer: unknown, i: number): KeptAlive => keptOf(answer, some[i]!);
      return this.#client.askAll('v3/lease/keepalive', bodies, read, until);
    });
    return kept.flat();
  }

  /** Milliseconds that each has left at most; 0 when there is none. Its own clock counts whole seconds. */
  remaining(ids: readonly string[], until: number): Promise<readonly number[]> {
    return inParallel(ids, IN_FLIGHT, async (ID) => {
      const read = (answer: unknown): number => integerOf(objectOf(answer)['TTL']);
      const { value } = await this.#client.ask('v3/lease/timetolive', { ID }, read, until);
      return Math.max(0, value + 1) * 1_000;
    });
  }

  /**
   * Ends a lease in the background, and all that is or, by a request that is still under way, may be put under it:
   * what nobody waits for any more can be executed before this, and goes with it, or after it, and fails (rule 2).
   * Asked again until it is answered, or its own time has done it.
   */
  end(lease: EtcdLease | undefined): void {
    if (lease === undefined) return;
    this.insist(lease.seconds, (until) => this.#revoke(lease.id, until));
  }

  /**
   * Asks in the background, again and again until it is answered, or a lease of so many seconds is over.
   *
   * @param ask - what can be executed many times with the effect of once
   */
  insist(seconds: number, ask: (until: number) => Promise<unknown>): void {
    const insisting = this.#insist(seconds, ask, this.#closing.signal).catch(() => {});
    this.#insisting.add(insisting);
    void insisting.finally(() => this.#insisting.delete(insisting));
  }

  /** What was insisted on is answered, or `ms` have passed. */
  async close(ms: number): Promise<void> {
    const closing = this.#closing;
    this.#closing = closingForMany();
    if (this.#insisting.size > 0) {
      const limit = new AbortController();
      const late = setTimeout(ms, undefined, { ref: false, signal: limit.signal });
      await Promise.race([Promise.all(this.#insisting), late.catch(() => {})]);
      limit.abort();
    }
    closing.abort();
  }

  async #insist(
    seconds: number,
    ask: (until: number) => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const giveUpAt = performance.now() + seconds * 1_000 + INSIST_BEYOND;
    let pause = INSIST_AGAIN_FIRST;
    while (!signal.aborted && performance.now() < giveUpAt) {
      try {
        await ask(performance.now() + INSIST_WITHIN);
        return;
      } catch {
        // Whatever it is.
      }
      await setTimeout(pause, undefined, { ref: false, signal });
      pause = Math.min(pause * 2, INSIST_AGAIN_AT_MOST);
    }
  }

  async #revoke(id: string, until: number): Promise<void> {
    try {
      await this.#client.ask('v3/lease/revoke', { ID: id }, objectOf, until);
    } catch (error) {
      if (!(error instanceof EtcdError && error.code === Code.notFound)) throw error;
    }
  }
}

function keptOf(value: unknown, id: string): KeptAlive {
  const answer = objectOf(value);
  if (idOf(answer['ID']) !== id) throw new UnreadableError();
  return { seconds: Math.max(0, integerOf(answer['TTL'])), term: headerOf(answer).term };
}

/** As many as are insisted on listen to it. */
function closingForMany(): AbortController {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  return closing;
}

/** 63 bits: no two meet. */
function freshId(): string {
  return String((randomBytes(8).readBigUInt64BE() >> 1n) | 1n);
}
