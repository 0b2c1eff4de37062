import { systemClock, type Clock } from '../../lease/clock.js';
import {
  ownerPrefix,
  type Claim,
  type Grant,
  type Hold,
  type LeaseRecord,
  type LeaseStore,
  type Refusal,
  type ReleaseHow,
  type RenewOutcome,
} from '../lease-store.js';

interface Holder {
  /** Nobody: the place stays taken after a release that came too soon (`keepFor`). */
  readonly token: string | undefined;
  readonly permits: number;
  readonly fence: number;
  readonly instance: string;
  /** Wall-clock milliseconds. */
  readonly since: number;
  expiresAt: number;
}

const SWEEP_AT_LEAST = 1_000;

/**
 * Leases in the memory of this process: for one instance, for tests, for development. Several Nest applications
 * in one process share it when they are given the same object. Protects nothing beyond this process.
 *
 * @publicApi
 */
export class MemoryLeaseStore implements LeaseStore {
  readonly name = 'memory';
  readonly limits = { minTtl: 1, maxTtl: 86_400_000, permits: true, push: true, shared: false };

  readonly #clock: Clock;
  readonly #holders = new Map<string, Holder[]>();
  readonly #marks = new Map<string, number>();
  readonly #watchers = new Map<string, Set<() => void>>();
  #lastFence = 0;
  #sweepAt = SWEEP_AT_LEAST;

  /** @param clock - for tests that own time */
  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async acquire(claim: Claim): Promise<Grant | Refusal> {
    this.#sweepNowAndThen();
    const { key, token, ttl, permits, once, instance } = claim;
    const now = this.#clock.now();
    const holders = this.#live(key, now);
    const mine = holders.find((holder) => holder.token === token);
    if (mine !== undefined) {
      mine.expiresAt = Math.max(mine.expiresAt, now + ttl);
      return { granted: true, fence: mine.fence };
    }
    if (once !== undefined && (this.#marks.get(markOf(key, once)) ?? -Infinity) > now) {
      return { granted: false, reason: 'done' };
    }
    const freeAt = whenFree(holders, permits);
    if (freeAt !== undefined) {
      return { granted: false, reason: 'held', retryAfterMs: freeAt - now };
    }
    // rule 8: one counter for all keys grows for each of them, and there is none to keep per key
    const since = this.#clock.wall();
    const fence = Math.max(this.#lastFence + 1, Math.floor(since * 1_000));
    this.#lastFence = fence;
    holders.push({ token, permits, fence, instance, since, expiresAt: now + ttl });
    this.#holders.set(key, holders);
    return { granted: true, fence };
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    return holds.map(({ key, token, ttl }) => {
      const mine = this.#live(key).find((holder) => holder.token === token);
      if (mine === undefined) return 'gone';
      mine.expiresAt = Math.max(mine.expiresAt, this.#clock.now() + ttl);
      return 'renewed';
    });
  }

  async release({ key, token }: Hold, { keepFor, done }: ReleaseHow): Promise<boolean> {
    const now = this.#clock.now();
    const holders = this.#live(key, now);
    const at = holders.findIndex((holder) => holder.token === token);
    if (at < 0) return false;
    if (done !== undefined) this.#marks.set(markOf(key, done.once), now + done.remember);
    if (keepFor !== undefined && keepFor > 0) {
      holders[at] = { ...holders[at]!, token: undefined, expiresAt: now + keepFor };
      return true;
    }
    holders.splice(at, 1);
    if (holders.length === 0) this.#holders.delete(key);
    const watchers = this.#watchers.get(key);
    // After who released it is told so.
    for (const onFree of watchers ?? []) void Promise.resolve().then(onFree);
    return true;
  }

  async watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    const watchers = this.#watchers.get(key) ?? new Set();
    // A function of its own: the same callback may watch twice.
    const watcher = (): void => onFree();
    this.#watchers.set(key, watchers.add(watcher));
    return async () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(key) === watchers) this.#watchers.delete(key);
    };
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    const holders = this.#live(key);
    if (holders.length === 0) return null;
    const now = this.#clock.now();
    const freeAt = Math.min(...holders.map((holder) => holder.expiresAt));
    return {
      key,
      freeInMs: Math.ceil(freeAt - now),
      holders: holders.flatMap(({ token, instance, fence, since, expiresAt }) =>
        token === undefined
          ? []
          : [
              {
                instance,
                fence,
                owner: ownerPrefix(token),
                since: new Date(since),
                expiresInMs: Math.ceil(expiresAt - now),
              },
            ],
      ),
    };
  }

  async *list({ prefix = '' }: { readonly prefix?: string } = {}): AsyncIterable<LeaseRecord> {
    for (const key of [...this.#holders.keys()].toSorted()) {
      const record = key.startsWith(prefix) ? await this.inspect(key) : null;
      if (record !== null) yield record;
    }
  }

  /** Opened nothing, so closes nothing: whoever shares the object goes on. */
  async close(): Promise<void> {}

  /** How many keys and marks are in memory, the expired ones that nobody has looked at included. */
  get size(): number {
    return this.#holders.size + this.#marks.size;
  }

  #live(key: string, now = this.#clock.now()): Holder[] {
    const holders = this.#holders.get(key);
    if (holders === undefined) return [];
    const live = holders.filter((holder) => holder.expiresAt > now);
    if (live.length === holders.length) return holders;
    if (live.length === 0) this.#holders.delete(key);
    else this.#holders.set(key, live);
    return live;
  }

  /** What nobody asks for again would stay for ever; a look at everything, rarely, costs next to nothing each. */
  #sweepNowAndThen(): void {
    if (this.size < this.#sweepAt) return;
    const now = this.#clock.now();
    for (const key of this.#holders.keys()) this.#live(key);
    for (const [mark, until] of this.#marks) if (until <= now) this.#marks.delete(mark);
    this.#sweepAt = Math.max(SWEEP_AT_LEAST, this.size * 2);
  }
}

// A key has no control characters, so a NUL keeps the two apart.
const markOf = (key: string, once: string): string => `${key}\0${once}`;

/**
 * When a claim for `permits` can succeed; `undefined` for now. A holder that claimed the key for itself alone
 * is respected by those who would share it, and the reverse.
 */
function whenFree(holders: readonly Holder[], permits: number): number | undefined {
  const exclusive = holders.find((holder) => holder.permits === 1);
  if (exclusive !== undefined) return exclusive.expiresAt;
  if (holders.length < permits) return undefined;
  const ends = holders.map((holder) => holder.expiresAt).toSorted((a, b) => a - b);
  return ends[holders.length - permits];
}
