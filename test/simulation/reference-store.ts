import type {
  Claim,
  Grant,
  Hold,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../../lib/stores/lease-store.js';

/** A place at a key: taken by a token, or kept taken by nobody after a release that came too soon. */
interface Seat {
  readonly key: string;
  readonly token: string | undefined;
  readonly permits: number;
  readonly fence: number;
  until: number;
}

/** Is told what the store really did, at the moment it did it. */
export interface StoreObserver {
  granted(key: string, token: string, fence: number, again: boolean): void;
  prolonged(token: string): void;
  /** `by` release, expiry, or a fault that breaks the store's promise. */
  ended(token: string, by: 'release' | 'expiry' | 'fault', until: number): void;
  marked(key: string, once: string, until: number): void;
  forgot(): void;
}

interface Snapshot {
  readonly at: number;
  readonly seats: readonly Seat[];
  readonly marks: ReadonlyMap<string, number>;
  readonly fences: ReadonlyMap<string, number>;
}

const FENCE_START = 1_700_000_000_000_000;

/**
 * What a store promises, in its plainest form: one list, no cleverness, written from the contract and from no
 * other store. Time is the server's own.
 */
export class ReferenceStore {
  #seats: Seat[] = [];
  #marks = new Map<string, number>();
  #fences = new Map<string, number>();
  #snapshots: Snapshot[] = [];

  constructor(
    private readonly now: () => number,
    private readonly observer?: StoreObserver,
    private readonly replicated = false,
  ) {}

  acquire(claim: Claim, deadline: number): Grant | Refusal {
    this.sweep();
    const { key, token, ttl, permits, once } = claim;
    const now = this.now();
    if (now > deadline) return { granted: false, reason: 'unavailable', cause: new Error('late') };
    const mine = this.#seatOf(key, token);
    if (mine !== undefined) {
      mine.until = Math.max(mine.until, now + ttl);
      this.#changed();
      this.observer?.granted(key, token, mine.fence, true);
      return { granted: true, fence: mine.fence };
    }
    if (once !== undefined && (this.#marks.get(`${key} ${once}`) ?? 0) > now) {
      return { granted: false, reason: 'done' };
    }
    const others = this.#seats.filter((seat) => seat.key === key);
    const freeAt = freeFor(others, permits);
    if (freeAt > now) return { granted: false, reason: 'held', retryAfterMs: freeAt - now };
    const fence = Math.max((this.#fences.get(key) ?? 0) + 1, FENCE_START + Math.floor(now * 1_000));
    this.#fences.set(key, fence);
    this.#seats.push({ key, token, permits, fence, until: now + ttl });
    this.#changed();
    this.observer?.granted(key, token, fence, false);
    return { granted: true, fence };
  }

  renew(holds: readonly Hold[]): RenewOutcome[] {
    this.sweep();
    return holds.map(({ key, token, ttl }) => {
      const mine = this.#seatOf(key, token);
      if (mine === undefined) return 'gone';
      mine.until = Math.max(mine.until, this.now() + ttl);
      this.#changed();
      this.observer?.prolonged(token);
      return 'renewed';
    });
  }

  release({ key, token }: Hold, { keepFor = 0, done }: ReleaseHow): boolean {
    this.sweep();
    const mine = this.#seatOf(key, token);
    if (mine === undefined) return false;
    const now = this.now();
    this.#seats = this.#seats.filter((seat) => seat !== mine);
    if (keepFor > 0) this.#seats.push({ ...mine, token: undefined, until: now + keepFor });
    if (done !== undefined) {
      this.#marks.set(`${key} ${done.once}`, now + done.remember);
      this.observer?.marked(key, done.once, now + done.remember);
    }
    this.#changed();
    if (mine.token !== undefined) this.observer?.ended(mine.token, 'release', now + keepFor);
    return true;
  }

  /** Whether this token holds its key now. */
  holds(token: string): boolean {
    return this.#seats.some((seat) => seat.token === token && seat.until > this.now());
  }

  get held(): readonly { readonly key: string; readonly token: string; readonly until: number }[] {
    return this.#seats.flatMap(({ key, token, until }) =>
      token === undefined ? [] : [{ key, token, until }],
    );
  }

  /** Time has passed: what is over is over. */
  sweep(): void {
    const now = this.now();
    if (!this.#seats.some((seat) => seat.until <= now)) return;
    const over = this.#seats.filter((seat) => seat.until <= now);
    this.#seats = this.#seats.filter((seat) => seat.until > now);
    for (const { token, until } of over) {
      if (token !== undefined) this.observer?.ended(token, 'expiry', until);
    }
  }

  /** Somebody cleared the key by hand. */
  clear(key: string): void {
    this.sweep();
    const gone = this.#seats.filter((seat) => seat.key === key);
    this.#seats = this.#seats.filter((seat) => seat.key !== key);
    this.#changed();
    this.observer?.forgot();
    for (const { token, until } of gone) {
      if (token !== undefined) this.observer?.ended(token, 'fault', until);
    }
  }

  /** All data is lost, fences included. */
  wipe(): void {
    this.#restore({ at: 0, seats: [], marks: new Map(), fences: new Map() });
  }

  /** A replica takes over that knows what was true `lag` ago. */
  failOver(lag: number): void {
    const then = this.now() - lag;
    const known = this.#snapshots.findLast(({ at }) => at <= then);
    this.#restore(known ?? { at: 0, seats: [], marks: new Map(), fences: new Map() });
  }

  #restore(state: Snapshot): void {
    this.sweep();
    const before = this.#seats;
    this.#seats = state.seats.map((seat) => ({ ...seat }));
    this.#marks = new Map(state.marks);
    this.#fences = new Map(state.fences);
    // What the others knew after that is nobody's past any more.
    this.#snapshots = this.#snapshots.filter(({ at }) => at <= state.at);
    this.#changed();
    this.observer?.forgot();
    for (const { key, token, until } of before) {
      if (token === undefined) continue;
      const kept = this.#seatOf(key, token);
      if (kept === undefined || kept.until < until) this.observer?.ended(token, 'fault', until);
    }
  }

  #changed(): void {
    if (!this.replicated) return;
    this.#snapshots.push({
      at: this.now(),
      seats: this.#seats.map((seat) => ({ ...seat })),
      marks: new Map(this.#marks),
      fences: new Map(this.#fences),
    });
  }

  #seatOf(key: string, token: string): Seat | undefined {
    return this.#seats.find((seat) => seat.key === key && seat.token === token);
  }
}

/** When a claim for one of `permits` places finds one; minus infinity for now. */
function freeFor(others: readonly Seat[], permits: number): number {
  const ends = others.map(({ until }) => until).toSorted((a, b) => a - b);
  const alone = others.find((seat) => seat.permits === 1);
  if (alone !== undefined) return alone.until;
  if (others.length < permits) return -Infinity;
  return ends[others.length - permits]!;
}
