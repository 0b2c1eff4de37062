import type { LeaseStore, Refusal } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { Holding } from './holding.js';
import type { Waiter } from './waiter.js';

const POLL_FIRST = 20;
const POLL_AT_MOST = 200;
/** Even with a push below it nobody sleeps longer than this on a word of the store. */
const NET_AT_MOST = 5_000;

/**
 * The waiters of this process for one key, first come, first served. Only the one at the head speaks to the
 * store (rule 10).
 */
export class WaitQueue {
  readonly #waiters: Waiter[] = [];
  /** Grows with every hint that the key may be free: a hint that comes while a claim is out is not lost. */
  #hints = 0;
  #watching: Promise<(() => Promise<void>) | undefined> | undefined;
  #pushes = false;
  #isCalling = false;
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

  /** Who speaks to the store, and is to have the key when one of us gives it back. */
  get head(): Waiter | undefined {
    return this.#waiters[0];
  }

  get hints(): number {
    return this.#hints;
  }

  enter(waiter: Waiter): void {
    this.#waiters.push(waiter);
  }

  leave(waiter: Waiter): void {
    const at = this.#waiters.indexOf(waiter);
    if (at < 0) return;
    if (at === 0) this.#waiters.shift();
    else this.#waiters.splice(at, 1);
    // Who is called may leave at once, and the next with it: one after the other, not one inside the other.
    if (this.#isCalling) return;
    this.#isCalling = true;
    for (let { head } = this; head?.isQueued; { head } = this) head.called();
    this.#isCalling = false;
    if (this.#waiters.length > 0) return;
    this.#stopWatching();
    this.onEmpty();
  }

  /** The key may be free. */
  hint(): void {
    this.#hints++;
    this.#busyUntil = 0;
    this.head?.wake();
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
  pause({ asked, attempt }: Waiter, { retryAfterMs, inLine }: Refusal): number {
    // A little after the moment the store named, and not all at the same moment.
    const free = (retryAfterMs ?? Infinity) + 1 + this.random() * 5;
    if (inLine) {
      // A call may be lost, and with it a grant: asked often enough that its ttl does not end unused.
      const third = (attempt.hold.ttl / 3) * (0.85 + 0.15 * this.random());
      return Math.min(free, third, NET_AT_MOST);
    }
    if (this.#pushes && retryAfterMs !== undefined) return Math.min(free, NET_AT_MOST);
    const poll = Math.min(POLL_FIRST * 1.5 ** Math.max(0, asked - 1), POLL_AT_MOST);
    return Math.min(free, poll * (0.5 + this.random()));
  }

  /** From now on a release is a hint, where the store can tell of one. */
  watch(): void {
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
