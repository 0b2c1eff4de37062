import type { RedisOptions } from 'ioredis';
import {
  NO_PERMITS,
  NOT_CONNECTED,
  REDLOCK_NO_MAJORITY,
  REDLOCK_NODE_COUNT,
  REDLOCK_QUARANTINE,
  REDLOCK_RELEASE_UNKNOWN,
  REDLOCK_SAME_NODE,
  REDLOCK_TTL,
} from '../../lease.messages.js';
import { parseDuration, type Duration } from '../../lease/duration.js';
import { assertKnown } from '../../lease/resolve-options.js';
import { UnderWay } from '../../lease/under-way.js';
import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
  RenewOutcome,
  StoreInThread,
} from '../lease-store.js';
import type { IoredisClient } from '../redis/redis-connection.js';
import { connectionForThread } from '../redis/redis-in-thread.js';
import { Acquisition, type AcquisitionParts } from './acquisition.js';
import { agreedRecord, isAgreed } from './agreed-record.js';
import { vote, type Tally } from './ballot.js';
import { readmit } from './readmission.js';
import { NODE_PATIENCE, RedlockNode } from './redlock-node.js';
import { Renewal } from './renewal.js';
import { LONGEST_TTL, majorityOf, type NodeRecord, type YesNo } from './voter.js';

/**
 * @publicApi
 */
export interface RedlockLeaseStoreOptions {
  /**
   * The longest ttl that is used with these nodes, by any process. A node that restarted, or lost its data, grants
   * nothing for this long: by then whatever it has forgotten is over. Also what a cluster that nobody has used before
   * waits once. Give all processes the same.
   * @default '60s'
   */
  maxTtl?: Duration;
  /**
   * Whether a node that restarted, or lost its data, stays out for `maxTtl`. Without it such a node can help a second
   * holder to a key that is held, and fences can fall behind.
   * @default true
   */
  quarantine?: boolean;
}

const CLOSE_PATIENCE = 500;
const LOOK_AT_ALL = 250;
const READMIT_PAUSE = 250;

/**
 * Leases on a majority of independent Redis servers: any minority of them may be down. Fences grow for any choice of
 * majorities. Read docs/redlock.md before you choose it over one Redis or a database.
 *
 * @example
 * ```ts
 * LeaseModule.forRoot({
 *   store: new RedlockLeaseStore(['redis://redis-a', 'redis://redis-b', 'redis://redis-c']),
 * });
 * ```
 * @publicApi
 */
export class RedlockLeaseStore implements LeaseStore {
  readonly name = 'Redlock';
  readonly limits: LeaseStore['limits'];

  readonly #nodes: readonly RedlockNode[];
  readonly #inThread: () => StoreInThread;
  /** By owner token: those that are under way, or whose late answers may still come. */
  readonly #acquisitions = new Map<string, Acquisition>();
  readonly #parts: AcquisitionParts;
  readonly #renewal: Renewal;
  readonly #underWay = new UnderWay();
  readonly #readmissions = new Map<RedlockNode, NodeJS.Timeout>();
  #closed = false;

  constructor(
    nodes: readonly (string | RedisOptions | IoredisClient)[],
    options: RedlockLeaseStoreOptions = {},
  ) {
    if (!Array.isArray(nodes) || nodes.length < 3 || nodes.length % 2 === 0) {
      throw new TypeError(REDLOCK_NODE_COUNT(nodes));
    }
    assertKnown(options, { maxTtl: true, quarantine: true });
    const maxTtl = Math.ceil(
      parseDuration(options.maxTtl ?? '60s', 'maxTtl', { min: MIN_TTL, max: LONGEST_TTL }),
    );
    this.limits = { minTtl: MIN_TTL, maxTtl, permits: false, push: false, shared: true };
    const longest = options.quarantine === false ? 0 : maxTtl;
    const onQuarantine = (node: RedlockNode, waitMs: number): void => this.#await(node, waitMs);
    this.#nodes = nodes.map((node) => new RedlockNode(node, longest, onQuarantine));
    assertDistinct(this.#nodes, ({ address }) => address);
    this.#inThread = () => ({
      module: import.meta.url,
      export: 'RedlockLeaseStore',
      args: [nodes.map(connectionForThread), options],
    });
    const voters = this.#nodes;
    const underWay = this.#underWay;
    const check = (): void => assertDistinct(voters, ({ run }) => run);
    this.#parts = { voters, underWay, random: Math.random, check };
    this.#renewal = new Renewal({ voters, underWay });
  }

  /** Rejects when there is no majority to vote; says when there will be, where that is known. */
  async open(): Promise<void> {
    this.#closed = false;
    const opened = await Promise.allSettled(this.#nodes.map((node) => node.open()));
    this.#parts.check();
    const states = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const waits = states.filter(({ votes }) => !votes).map(({ waitMs }) => waitMs);
    const count = this.#nodes.length;
    if (states.length - waits.length >= majorityOf(count)) return;
    if (states.length >= majorityOf(count)) {
      throw new Error(REDLOCK_QUARANTINE(waits.length, count, Math.min(...waits)));
    }
    const failed = opened.find((one) => one.status === 'rejected');
    throw new Error(REDLOCK_NO_MAJORITY(count - states.length, count), { cause: failed?.reason });
  }

  /** Connections of its own to the same places; of clients that were passed in, as they were configured. */
  thread(): StoreInThread {
    return this.#inThread();
  }

  async acquire(claim: Claim): Promise<Grant | Refusal> {
    this.#assertOpen();
    this.#assertWithin(claim);
    const { token } = claim;
    let acquisition = this.#acquisitions.get(token);
    if (acquisition === undefined) {
      acquisition = new Acquisition(claim, this.#parts, () => this.#acquisitions.delete(token));
      this.#acquisitions.set(token, acquisition);
    }
    return acquisition.try(claim);
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    this.#assertOpen();
    for (const hold of holds) this.#assertWithin(hold);
    return this.#renewal.renew(holds);
  }

  async release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    this.#assertOpen();
    // First of all: if it cannot be sent, whatever is granted to it later is given back.
    this.#acquisitions.get(hold.token)?.finish();
    this.#renewal.forget(hold.token);
    const until = performance.now() + NODE_PATIENCE;
    const majority = majorityOf(this.#nodes.length);
    return vote<YesNo, boolean>({
      voters: this.#nodes,
      question: (node) => node.release(hold, how, { until, isWanted: () => true }),
      decide: (tally) => {
        const [freed, others] = ['yes', 'no'].map((kind) => tally.countOf((one) => one === kind));
        if (freed! >= majority) return true;
        if (others! >= majority) return false;
        if (Math.max(freed!, others!) + tally.open >= majority) return undefined;
        throw new Error(REDLOCK_RELEASE_UNKNOWN(freed!, this.#nodes.length), {
          cause: tally.failures.values().next().value,
        });
      },
      until,
      underWay: this.#underWay,
    });
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    this.#assertOpen();
    const count = this.#nodes.length;
    const look = (
      ms: number,
      isEnough: (tally: Tally<NodeRecord | undefined>) => boolean,
    ): Promise<{ record: LeaseRecord | null }> =>
      vote<NodeRecord | undefined, { record: LeaseRecord | null }>({
        voters: this.#nodes,
        question: (node) => node.inspect(key),
        decide: (tally) => {
          if (tally.answers.size + tally.open < majorityOf(count)) {
            const cause = tally.failures.values().next().value;
            throw new Error(REDLOCK_NO_MAJORITY(tally.silent, count), { cause });
          }
          if (!tally.isOver && !isEnough(tally)) return undefined;
          return { record: agreedRecord(key, tally, count) };
        },
        until: performance.now() + ms,
        underWay: this.#underWay,
      });
    // One node may not have heard of the last renewal: for how long the key is held is told best by all of them.
    const all = await look(LOOK_AT_ALL, () => false).catch(() => 'none' as const);
    const looked =
      all === 'none' ? await look(NODE_PATIENCE, (tally) => isAgreed(tally, count)) : all;
    return looked.record;
  }

  async *list({ prefix = '' }: { readonly prefix?: string } = {}): AsyncIterable<LeaseRecord> {
    this.#assertOpen();
    const lists = await this.#keysOfMajority(prefix);
    for (const key of new Set(lists.flat())) {
      const record = await this.inspect(key);
      if (record !== null) yield record;
    }
  }

  /** Of a majority, and of who else is done soon: one that scans for ever is not waited for. */
  async #keysOfMajority(prefix: string): Promise<readonly (readonly string[])[]> {
    const count = this.#nodes.length;
    const lists: (readonly string[])[] = [];
    const failures: unknown[] = [];
    let isOver = false;
    const scans = this.#nodes.map((node) =>
      node
        .keys(prefix, () => !isOver && !this.#closed)
        .then(
          (keys) => void lists.push(keys),
          (error: unknown) => void failures.push(error),
        ),
    );
    const majority = majorityOf(count);
    const isNone = (): boolean => failures.length > count - majority;
    await someOf(scans, () => lists.length >= majority || isNone());
    if (lists.length >= majority) await atMost(NODE_PATIENCE, Promise.all(scans));
    isOver = true;
    if (lists.length >= majority) return [...lists];
    throw new Error(REDLOCK_NO_MAJORITY(failures.length, count), { cause: failures[0] });
  }

  /** Closes our own connections; clients that were passed in are the user's. {@link open} opens them again. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#readmissions.values()) clearTimeout(timer);
    this.#readmissions.clear();
    // What is given back is on its way; a node that is down or frozen is not waited for.
    await atMost(CLOSE_PATIENCE, this.#underWay.over());
    await Promise.all(this.#nodes.map((node) => node.close()));
    await atMost(CLOSE_PATIENCE, this.#underWay.over());
  }

  /** Sees to it that a node votes again when its quarantine is over. */
  #await(node: RedlockNode, waitMs: number): void {
    if (this.#closed || this.#readmissions.has(node)) return;
    const timer = setTimeout(() => {
      void this.#underWay.add(this.#readmit(node));
    }, waitMs + 1).unref();
    this.#readmissions.set(node, timer);
  }

  async #readmit(node: RedlockNode): Promise<void> {
    // It stays in the map meanwhile, so that nobody else begins with it.
    const waitMs = await readmit(node, this.#nodes).catch(() => READMIT_PAUSE);
    this.#readmissions.delete(node);
    // Whatever it says, it and the others are not asked in a circle.
    if (waitMs > 0) this.#await(node, Math.max(waitMs, READMIT_PAUSE));
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error(NOT_CONNECTED());
  }

  /** What outlived the quarantine, or was shared, would not be safe. */
  #assertWithin({ ttl, permits }: Hold): void {
    if (permits !== 1) throw new RangeError(NO_PERMITS(this.name));
    if (ttl > this.limits.maxTtl) throw new RangeError(REDLOCK_TTL(ttl, this.limits.maxTtl));
  }
}

/** Below it, half of the ttl is too little for two round trips to a majority. */
const MIN_TTL = 300;

/** A server that votes twice is no majority. */
function assertDistinct(
  nodes: readonly RedlockNode[],
  of: (node: RedlockNode) => string | undefined,
): void {
  nodes.forEach((node, i) => {
    const id = of(node);
    const same = nodes.findIndex((other) => of(other) === id);
    if (id !== undefined && same < i) {
      throw new TypeError(REDLOCK_SAME_NODE(same, i, nodes[same]!.name, node.name));
    }
  });
}

/** Resolves when so many have ended that it is enough. */
async function someOf(begun: readonly Promise<void>[], isEnough: () => boolean): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const one of begun) void one.then(() => isEnough() && resolve());
  });
}

async function atMost(ms: number, ends: Promise<unknown>): Promise<void> {
  let limit: NodeJS.Timeout | undefined;
  const tooLong = new Promise<void>((resolve) => (limit = setTimeout(resolve, ms).unref()));
  await Promise.race([ends, tooLong]);
  clearTimeout(limit);
}
