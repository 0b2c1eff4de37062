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
    /** Whether {@link LeaseStore.watch} tells of a release. */
    readonly push: boolean;
    /** Whether the store protects more than this process. */
    readonly shared: boolean;
  };
  /**
   * Grants or refuses, in one atomic step (rule 1). A claim that comes again with the token of a live holder is
   * granted again with the same fence, for a ttl from now (rule 2).
   */
  acquire(claim: Claim): Promise<Grant | Refusal>;
  /** Prolongs what is still held, in as few round trips as can be. Never shortens, never re-creates (rule 5). */
  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]>;
  /** Frees the key if the token still holds it; says whether it did (rule 7). */
  release(hold: Hold, how: ReleaseHow): Promise<boolean>;
  /** Calls `onFree` when the key may have become free: a hint, may come too often. Resolves when it listens. */
  watch?(key: string, onFree: () => void): Promise<() => Promise<void>>;
  inspect(key: string): Promise<LeaseRecord | null>;
  /** All keys with the given beginning that are not free. */
  list(options?: { readonly prefix?: string }): AsyncIterable<LeaseRecord>;
  /** Opens what is opened lazily otherwise. Rejects if it cannot; the store goes on trying all the same. */
  open?(): Promise<void>;
  /** Closes only what it opened itself. */
  close(): Promise<void>;
}

/** As much of an owner token as may be seen (rule 15). */
export const ownerPrefix = (token: string): string => token.slice(0, 8);
