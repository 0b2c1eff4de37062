/**
 * A request for a key.
 *
 * @publicApi
 */
export interface Claim {
  /** The whole key, its namespace included: opaque to a store, at most 700 bytes, without control characters. */
  readonly key: string;
  /** Names this one acquisition. Secret: whoever knows it can renew and release. */
  readonly token: string;
  /** Milliseconds until the store frees the key by itself. */
  readonly ttl: number;
  /** How many may hold the key together, this claim included. 1 is exclusive. */
  readonly permits: number;
  /** A unit of work: the claim is refused as `done` while a mark of that name is remembered for the key. */
  readonly once?: string;
  /** Who asks, for people. */
  readonly instance: string;
  /** Milliseconds the caller waits for the answer. A store with a clock does not grant after that (rule 2). */
  readonly patience: number;
  /** Milliseconds since which the claimant waits for the key: its place in a line that several processes share. */
  readonly waited?: number;
}

/**
 * The key is the claimant's.
 *
 * @publicApi
 */
export interface Grant {
  readonly granted: true;
  /** Greater than every fence that was granted for this key before (rule 8). A safe integer. */
  readonly fence: number;
}

/**
 * The key is not the claimant's, and why (rule 9).
 *
 * @publicApi
 */
export interface Refusal {
  readonly granted: false;
  /** `held` by others, `done` already, or the store is in no state to say (`unavailable`). */
  readonly reason: 'held' | 'done' | 'unavailable';
  /** Milliseconds until the key can be free, where known. */
  readonly retryAfterMs?: number;
  /** The claim stays in line and its turn will be told: see {@link LeaseStore.enqueue}. */
  readonly inLine?: boolean;
  readonly cause?: unknown;
}

/**
 * What a holder shows to renew or to release.
 *
 * @publicApi
 */
export interface Hold {
  readonly key: string;
  readonly token: string;
  readonly ttl: number;
  readonly permits: number;
}

/**
 * `renewed`: held for another ttl. `gone`: not this token's any more. `unknown`: no telling.
 *
 * @publicApi
 */
export type RenewOutcome = 'renewed' | 'gone' | 'unknown';

/**
 * How to release.
 *
 * @publicApi
 */
export interface ReleaseHow {
  /** The key stays taken for so many milliseconds more, by nobody. */
  readonly keepFor?: number;
  /** Remember, in the same atomic step, that this unit of work is done. */
  readonly done?: { readonly once: string; readonly remember: number };
  /**
   * Nobody waits for the answer. A store may send it together with what it is asked for next, but does send it before
   * the event loop turns.
   */
  readonly relaxed?: boolean;
}

/**
 * A claimant in line is called: with a grant when the key was given to it, without one when it should ask again.
 * @publicApi
 */
export type OnTurn = (grant?: Grant) => void;

/**
 * What came of releasing a key and claiming it again in one step.
 * @publicApi
 */
export interface HandOver {
  /** Whether the key was freed, as {@link LeaseStore.release} says it. */
  readonly freed: boolean;
  /** The answer to the claim. */
  readonly answer: Grant | Refusal;
}

/**
 * Who holds a key, for people.
 *
 * @publicApi
 */
export interface LeaseHolder {
  readonly instance: string;
  readonly fence: number;
  /** The first characters of the owner token: enough to tell two acquisitions apart, useless to act with. */
  readonly owner: string;
  readonly since: Date;
  readonly expiresInMs: number;
}

/**
 * What a store knows of a key that is not free.
 *
 * @publicApi
 */
export interface LeaseRecord {
  readonly key: string;
  /** Nobody when the key is only kept taken after a release (`minHold`). */
  readonly holders: readonly LeaseHolder[];
  /** Milliseconds until the key, or one of its permits, can be free. */
  readonly freeInMs: number;
}

/**
 * How to make the same store in another thread: what can be sent there, by structured clone.
 *
 * @publicApi
 */
export interface StoreInThread {
  /** What to import: a file URL, or a package. */
  readonly module: string;
  /** The name of the class that it exports. */
  readonly export: string;
  /** What its constructor is given. */
  readonly args: readonly unknown[];
}

/**
 * What a store is: the whole contract. A method that rejects means "don't know", never "held by others".
 *
 * @publicApi
 */
export interface LeaseStore {
  /** For people: logs, events, errors. */
  readonly name: string;
  readonly limits: {
    readonly minTtl: number;
    readonly maxTtl: number;
    /** Whether more than one holder per key is supported. */
    readonly permits: boolean;
    /** Whether waiters are told of a release, by {@link LeaseStore.enqueue} or {@link LeaseStore.watch}. */
    readonly push: boolean;
    /** Whether the store protects more than this process. */
    readonly shared: boolean;
    /**
     * Whether it remembers units of work (`once`).
     * @default true
     */
    readonly once?: boolean;
    /**
     * Whether it can keep a key taken after its release (`minHold`).
     * @default true
     */
    readonly minHold?: boolean;
    /**
     * Whether it frees a key by itself when its ttl is over. One that does not frees it when the holder is gone.
     * @default true
     */
    readonly expiry?: boolean;
  };
  /**
   * Grants or refuses, in one atomic step (rule 1). A claim that comes again with the token of a live holder is
   * granted again with the same fence, for a ttl from now (rule 2).
   */
  acquire(claim: Claim): Promise<Grant | Refusal>;
  /** Prolongs what is still held, in as few round trips as can be. Never shortens, never re-creates (rule 5). */
  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]>;
  /**
   * Frees the key if it is still the token's; says whether it was (rule 7): false when another has had it since. When
   * it expired and nobody has, a store may say either.
   */
  release(hold: Hold, how: ReleaseHow): Promise<boolean>;
  /**
   * Where all processes wait in one line, first come, first served. Asks as {@link LeaseStore.acquire} does; refused
   * as held, the claim stays in line and `onTurn` is called, any number of times, until it was granted or left the
   * line by a {@link LeaseStore.release} of its token. To ask again with the same token keeps the place. A grant
   * that comes by `onTurn` lasts for the claim's ttl at least from when it was granted, which was after the claim was
   * first sent.
   */
  enqueue?(claim: Claim, onTurn: OnTurn): Promise<Grant | Refusal>;
  /**
   * Releases a key that is held alone and claims it for the next of the same process, in one atomic step; those who
   * came before it go first. The claim may stay in line as after {@link LeaseStore.enqueue}.
   */
  handOver?(hold: Hold, next: Claim, onTurn: OnTurn): Promise<HandOver>;
  /** Calls `onFree` when the key may have become free: a hint, may come too often. Resolves when it listens. */
  watch?(key: string, onFree: () => void): Promise<() => Promise<void>>;
  /**
   * Of a store that may find out by itself that holds are gone, as when the connection breaks that they depend on: calls
   * `onGone` with the token of each. Returns what ends it.
   */
  watchLoss?(onGone: (token: string) => void): () => void;
  inspect(key: string): Promise<LeaseRecord | null>;
  /** All keys with the given beginning that are not free. */
  list(options?: { readonly prefix?: string }): AsyncIterable<LeaseRecord>;
  /** Opens what is opened lazily otherwise. Rejects if it cannot; the store goes on trying all the same. */
  open?(): Promise<void>;
  /**
   * For `renewInThread`: how a thread gets a store of its own that renews what this one granted. Throws when the way
   * this one was made cannot be sent there, and names what stands in the way.
   */
  thread?(): StoreInThread;
  /** Closes only what it opened itself. */
  close(): Promise<void>;
}

/** As much of an owner token as may be seen (rule 15). */
export const ownerPrefix = (token: string): string => token.slice(0, 8);
