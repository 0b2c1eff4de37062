import type { LeaseStore, Refusal } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { Holding } from './holding.js';

const POLL_FIRST = 20;
const POLL_AT_MOST = 200;
/** Even with a push below it nobody sleeps longer than this on a word of the store. */
const NET_AT_MOST = 5_000;

/** One waiter's place in the queue. */
export interface Place {
  /** Resolves when it is this waiter's turn to speak to the store. */
  readonly turn: Promise<void>;
  isHead: boolean;
  /** How often it asked. */
  asked: number;
}

/**
 * The waiters of this process for one key, first come, first served. Only the one at the head speaks to the
 * store (rule 10).
 */
export class WaitQueue {
  readonly #places: { place: Place; call: () => void }[] = [];
  /** Grows with every hint that the key may be free: a hint that comes while a claim is out is not lost. */
  #hints = 0;
  #wakeHead: (() => void) | undefined;
  #watching: Promise<(() => Promise<void>) | undefined> | undefined;
  #pushes = false;
  #busyUntil = 0;
  /** The holder, when it is one of us: the next in line need not ask the store while it is. */
  heldHere: Holding | undefined;
  /** For those who give up before it was their turn to ask. */
  lastRefusal: Refusal | undefined;

  constructor(
    private readonly key: string,
    private readonly store: LeaseStore,
    private readonly agenda: Agenda,
    private readonly random: () => number,
    private readonly onEmpty: () => void,
  ) {}

  get size(): number {
    return this.#places.length;
  }

  get hints(): number {
    return this.#hints;
  }

  enter(): Place {
    let call!: () => void;
    const turn = new Promise<void>((resolve) => {
      call = resolve;
    });
    const place: Place = { turn, isHead: false, asked: 0 };
    this.#places.push({ place, call });
    this.#callHead();
    return place;
  }

  leave(place: Place): void {
    const at = this.#places.findIndex((entry) => entry.place === place);
    if (at < 0) return;
    this.#places.splice(at, 1);
    if (this.#places.length === 0) {
      this.#stopWatching();
      this.onEmpty();
    } else {
      this.#callHead();
    }
  }

  #callHead(): void {
    const { place, call } = this.#places[0]!;
    place.isHead = true;
    call();
  }

  /** The key may be free. */
  hint(): void {
    this.#hints++;
    this.#busyUntil = 0;
    this.#wakeHead?.();
  }

  /** What the store last told the head. Held: for so long nobody here need ask it. */
  refused(refusal: Refusal): void {
    this.lastRefusal = refusal;
    const busy = refusal.reason === 'held' ? (refusal.retryAfterMs ?? 0) : 0;
    this.#busyUntil = this.agenda.clock.now() + busy;
  }

  /** Milliseconds for which the key is known to be held, as far as the head was told. */
  get busyFor(): number {
    return Math.max(0, this.#busyUntil - this.agenda.clock.now());
  }

  /** How long the head sleeps on an answer of the store. */
  pause(place: Place, retryAfterMs: number | undefined): number {
    // A little after the moment the store named, and not all at the same moment.
    const free = (retryAfterMs ?? Infinity) + 1 + this.random() * 5;
    if (this.#pushes && retryAfterMs !== undefined) return Math.min(free, NET_AT_MOST);
    const poll = Math.min(POLL_FIRST * 1.5 ** Math.max(0, place.asked - 1), POLL_AT_MOST);
    return Math.min(free, poll * (0.5 + this.random()));
  }

  /** Sleeps for `ms`, or until a hint or a nudge; not at all when a hint came since `seen`. */
  async sleep(seen: number, ms: number): Promise<void> {
    this.#watch();
    if (this.#hints !== seen) return;
    await new Promise<void>((resolve) => {
      const alarm = this.agenda.after(ms, resolve);
      this.#wakeHead = () => {
        this.agenda.cancel(alarm);
        resolve();
      };
    });
    this.#wakeHead = undefined;
  }

  /** Wakes the head so that it looks at its own end. Counted as a hint is: it may just be about to sleep. */
  nudge(): void {
    this.#hints++;
    this.#wakeHead?.();
  }

  #watch(): void {
    if (this.#watching !== undefined || !this.store.limits.push || !this.store.watch) return;
    const heard = (): void => this.hint();
    this.#watching = Promise.resolve()
      .then(() => this.store.watch!(this.key, heard))
      .then(
        (stop) => {
          this.#pushes = true;
          // What was released before we listened told nobody: look again.
          this.hint();
          return stop;
        },
        // No push then; the poll goes on.
        () => undefined,
      );
  }

  #stopWatching(): void {
    const watching = this.#watching;
    this.#watching = undefined;
    this.#pushes = false;
    void watching?.then((stop) => stop?.()).catch(() => {});
  }
}
