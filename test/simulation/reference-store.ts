import type {
  Claim,
  Grant,
  HandOver,
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

/** Where one who waits in line is called, if its process listens there. */
export interface Ear {
  readonly hears: boolean;
  /** With a grant when the key was given to it; without one it may ask again. */
  call(claim: Claim, grant?: Grant): void;
}

/** A place in line. */
interface Waiter {
  readonly claim: Claim;
  readonly ear: Ear;
  /** When it began to wait, as far as it says so itself. */
  readonly since: number;
}

/** Is told what the store really did, at the moment it did it. */
export interface StoreObserver {
  granted(key: string, token: string, fence: number, again: boolean): void;
  prolonged(token: string): void;
  /** `by` release, expiry, or a fault that breaks the store's promise. */
  ended(token: string, by: 'release' | 'expiry' | 'fault', until: number): void;
  marked(key: string, once: string, until: number): void;
  /** One in line was called: with the key, or to ask for it. */
  called(isGrant: boolean): void;
  handedOver(): void;
  forgot(): void;
}

interface Snapshot {
  readonly at: number;
  readonly seats: readonly Seat[];
  readonly line: readonly Waiter[];
  readonly marks: ReadonlyMap<string, number>;
  readonly fences: ReadonlyMap<string, number>;
}

const FENCE_START = 1_700_000_000_000_000;
const NOTHING: Snapshot = { at: 0, seats: [], line: [], marks: new Map(), fences: new Map() };

/**
 * What a store promises, in its plainest form: one list, no cleverness, written from the contract and from no
 * other store. Time is the server's own.
 */
export class ReferenceStore {
  #seats: Seat[] = [];
  /** Who came first is first. */
  #line: Waiter[] = [];
  #marks = new Map<string, number>();
  #fences = new Map<string, number>();
  #snapshots: Snapshot[] = [];

  constructor(
    private readonly now: () => number,
    private readonly observer?: StoreObserver,
    private readonly replicated = false,
  ) {}

  /** @param ear - of one who waits in line if it is refused */
  acquire(claim: Claim, deadline: number, ear?: Ear): Grant | Refusal {
    this.sweep();
    return this.now() > deadline ? tooLate() : this.#claim(claim, ear);
  }

  #claim(claim: Claim, ear: Ear | undefined): Grant | Refusal {
    const { key, token, ttl, permits, once } = claim;
    const now = this.now();
    const mine = this.#seatOf(key, token);
    if (mine !== undefined) {
      mine.until = Math.max(mine.until, now + ttl);
      this.#changed();
      this.observer?.granted(key, token, mine.fence, true);
      return { granted: true, fence: mine.fence };
    }
    if (once !== undefined && (this.#marks.get(`${key} ${once}`) ?? 0) > now) {
      this.#leave(token);
      return { granted: false, reason: 'done' };
    }
    if (ear !== undefined) this.#stand(claim, ear);
    this.#serve(key, token);
    const freeAt = this.#freeAt(key, permits);
    const inLine = ear === undefined ? {} : { inLine: true };
    if (freeAt > now) {
      return { granted: false, reason: 'held', retryAfterMs: freeAt - now, ...inLine };
    }
    this.#leave(token);
    return this.#grant(claim);
  }

  #grant({ key, token, ttl, permits }: Claim): Grant {
    const now = this.now();
    const fence = Math.max((this.#fences.get(key) ?? 0) + 1, FENCE_START + Math.floor(now * 1_000));
    this.#fences.set(key, fence);
    this.#seats.push({ key, token, permits, fence, until: now + ttl });
    this.#changed();
    this.observer?.granted(key, token, fence, false);
    return { granted: true, fence };
  }

  /** Frees a key and claims it for the next of the same process; those who came before it go first. */
  handOver(hold: Hold, next: Claim, deadline: number, ear?: Ear): HandOver {
    this.sweep();
    const freed = this.#free(hold, {});
    this.observer?.handedOver();
    if (this.now() <= deadline) return { freed, answer: this.#claim(next, ear) };
    this.#serve(hold.key);
    return { freed, answer: tooLate() };
  }

  // — the line

  /** Who waits already keeps its place. */
  #stand(claim: Claim, ear: Ear): void {
    const known = this.#line.find((waiter) => waiter.claim.token === claim.token);
    const since = known?.since ?? this.now() - (claim.waited ?? 0);
    this.#leave(claim.token);
    const behind = this.#line.findIndex((waiter) => waiter.since > since);
    this.#line.splice(behind < 0 ? this.#line.length : behind, 0, { claim, ear, since });
    this.#changed();
  }

  #leave(token: string): void {
    this.#line = this.#line.filter((waiter) => waiter.claim.token !== token);
  }

  /**
   * Goes along the line, up to one that asks itself. Who can have the key alone is given it, if it can be told; who
   * shares it, or has to look first whether the work is done, is told to ask.
   */
  #serve(key: string, upTo?: string): void {
    for (const waiter of this.#line.filter(({ claim }) => claim.key === key)) {
      const { claim, ear } = waiter;
      if (claim.token === upTo) return;
      if (this.#freeAt(key, claim.permits) > this.now()) continue;
      this.#leave(claim.token);
      if (!ear.hears) continue;
      const isGrant = claim.permits === 1 && claim.once === undefined;
      this.observer?.called(isGrant);
      if (isGrant) ear.call(claim, this.#grant(claim));
      else ear.call(claim);
    }
  }

  /** Who waits in line, first come, first. */
  get line(): readonly Claim[] {
    return this.#line.map(({ claim }) => claim);
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

  /** Also takes a token out of the line. */
  release(hold: Hold, how: ReleaseHow): boolean {
    this.sweep();
    const freed = this.#free(hold, how);
    this.#serve(hold.key);
    return freed;
  }

  #free({ key, token }: Hold, { keepFor = 0, done }: ReleaseHow): boolean {
    this.#leave(token);
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
    this.#restore(NOTHING);
  }

  /** A replica takes over that knows what was true `lag` ago. */
  failOver(lag: number): void {
    const then = this.now() - lag;
    const known = this.#snapshots.findLast(({ at }) => at <= then);
    this.#restore(known ?? NOTHING);
  }

  #restore(state: Snapshot): void {
    this.sweep();
    const before = this.#seats;
    this.#seats = state.seats.map((seat) => ({ ...seat }));
    this.#line = [...state.line];
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
      line: [...this.#line],
      marks: new Map(this.#marks),
      fences: new Map(this.#fences),
    });
  }

  #freeAt(key: string, permits: number): number {
    return freeFor(
      this.#seats.filter((seat) => seat.key === key),
      permits,
    );
  }

  /** Whether nobody has it, and nobody keeps it taken. */
  isFree(key: string): boolean {
    return !this.#seats.some((seat) => seat.key === key);
  }

  #seatOf(key: string, token: string): Seat | undefined {
    return this.#seats.find((seat) => seat.key === key && seat.token === token);
  }
}

const tooLate = (): Refusal => ({
  granted: false,
  reason: 'unavailable',
  cause: new Error('late'),
});

/** When a claim for one of `permits` places finds one; minus infinity for now. */
function freeFor(others: readonly Seat[], permits: number): number {
  const ends = others.map(({ until }) => until).toSorted((a, b) => a - b);
  const alone = others.find((seat) => seat.permits === 1);
  if (alone !== undefined) return alone.until;
  if (others.length < permits) return -Infinity;
  return ends[others.length - permits]!;
}
