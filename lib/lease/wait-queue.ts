import type { LeaseStore, Refusal } from '../stores/lease-store.js';
import type { Agenda, Appointment } from './agenda.js';
import type { Attempt } from './claimant.js';
import type { EndOfWaiting } from './end-of-waiting.js';
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
  readonly attempt: Attempt;
  /** The key is being handed over to it by the holder, who is one of us: what comes of that. */
  handed: Promise<Holding | Refusal> | undefined;
  /** A claim of it is under way. */
  isAsking: boolean;
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

  /** Who is to have the key when one of us gives it back, unless it is just asking for it. */
  get next(): Place | undefined {
    const place = this.#places[0]?.place;
    return place?.isAsking || place?.handed ? undefined : place;
  }

  get hints(): number {
    return this.#hints;
  }

  enter(attempt: Attempt): Place {
    let call!: () => void;
    const turn = new Promise<void>((resolve) => {
      call = resolve;
    });
    const place: Place = {
      turn,
      attempt,
      isHead: false,
      asked: 0,
      handed: undefined,
      isAsking: false,
    };
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
  pause(place: Place, { retryAfterMs, inLine }: Refusal): number {
    // A little after the moment the store named, and not all at the same moment.
    const free = (retryAfterMs ?? Infinity) + 1 + this.random() * 5;
    if (inLine) {
      // A call may be lost, and with it a grant: asked often enough that its ttl does not end unused.
      const third = (place.attempt.hold.ttl / 3) * (0.85 + 0.15 * this.random());
      return Math.min(free, third, NET_AT_MOST);
    }
    if (this.#pushes && retryAfterMs !== undefined) return Math.min(free, NET_AT_MOST);
    const poll = Math.min(POLL_FIRST * 1.5 ** Math.max(0, place.asked - 1), POLL_AT_MOST);
    return Math.min(free, poll * (0.5 + this.random()));
  }

  /** Sleeps for `ms`, or until a hint, a nudge or the end; not at all when a hint came since `seen`. */
  async sleep(seen: number, ms: number, end: EndOfWaiting): Promise<void> {
    this.#watch();
    if (this.#hints !== seen) return;
    let alarm: Appointment | undefined;
    await end.before<void>((resolve) => {
      alarm = this.agenda.after(ms, resolve);
      this.#wakeHead = resolve;
    });
    if (alarm !== undefined) this.agenda.cancel(alarm);
    this.#wakeHead = undefined;
  }

  /** Wakes the head so that it looks at what has changed. Counted as a hint is: it may just be about to sleep. */
  nudge(): void {
    this.#hints++;
    this.#wakeHead?.();
  }

  #watch(): void {
    const { limits, watch, enqueue } = this.store;
    if (this.#watching !== undefined || !limits.push || !watch || enqueue) return;
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
