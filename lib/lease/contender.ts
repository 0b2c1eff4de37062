import type { Hold, LeaseStore } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import { AskOnce } from './ask-once.js';
import type { Attempt, Claimant, HandedOver } from './claimant.js';
import { patienceFor } from './patience.js';
import { Roster } from './roster.js';
import type { Contest, Found, Seeker } from './seeker.js';
import { WaitQueue } from './wait-queue.js';
import { Waiter } from './waiter.js';

/** Gets a key at once or by waiting for it, in turn with the others of this process (rule 10). */
export class Contender implements Contest {
  readonly seekers = new Roster<Seeker>();
  readonly #queues = new Map<string, WaitQueue>();
  #closing: { readonly reason: unknown } | undefined;

  constructor(
    private readonly store: LeaseStore,
    readonly agenda: Agenda,
    private readonly random: () => number,
    readonly claimant: Claimant,
    /** The release of a key by this process that is under way, if there is one. */
    private readonly releasing: (qualified: string) => { over(): Promise<void> } | undefined,
  ) {}

  get closing(): { readonly reason: unknown } | undefined {
    return this.#closing;
  }

  /** Keys that somebody here waits for. */
  get awaited(): number {
    return this.#queues.size;
  }

  /** Ends all waiting. */
  close(reason: unknown): void {
    this.#closing = { reason };
    for (const seeker of this.seekers) seeker.giveUp();
  }

  /** The key may be free. */
  hint(qualified: string): void {
    if (this.#queues.size > 0) this.#queues.get(qualified)?.hint();
  }

  /** Asks once, without waiting for anything but the answer. */
  ask(attempt: Attempt, found: Found, failed: (reason: unknown) => void): void {
    const { qualified } = attempt.target;
    // Those who wait here were first, and were told that it is held.
    const busyFor = this.#queues.size > 0 ? (this.#queues.get(qualified)?.busyFor ?? 0) : 0;
    if (busyFor > 0) return found({ granted: false, reason: 'held', retryAfterMs: busyFor });
    new AskOnce(this, attempt, this.releasing(qualified), found, failed).ask();
  }

  /** Asks, and asks again when the key may be free, until `deadline` on the monotonic clock. */
  waitFor(
    attempt: Attempt,
    deadline: number,
    found: Found,
    failed: (reason: unknown) => void,
  ): void {
    const queue = this.#queue(attempt.target.qualified);
    new Waiter(this, queue, attempt, deadline, found, failed).enter();
  }

  /**
   * When one of us waits for a key that is about to be given back: does both in one request, and `told` is told what
   * came of giving it back. Nothing, and false, when nobody does.
   */
  handOver(hold: Hold, told: HandedOver): boolean {
    if (this.store.handOver === undefined || this.#queues.size === 0) return false;
    const next = this.#queues.get(hold.key)?.head;
    if (hold.permits !== 1 || !next?.canBeHanded || this.#closing !== undefined) return false;
    const { attempt, onTurn } = next;
    next.expectHandOver();
    this.claimant.handOver(hold, attempt, patienceFor(attempt.options.ttl), next, onTurn, told);
    return true;
  }

  #queue(qualified: string): WaitQueue {
    let queue = this.#queues.get(qualified);
    if (queue === undefined) {
      queue = new WaitQueue(qualified, this.store, this.agenda, this.random, () =>
        this.#queues.delete(qualified),
      );
      this.#queues.set(qualified, queue);
    }
    return queue;
  }
}
