import type { LeaseStore, Refusal } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import { unavailable, type Attempt, type Claimant } from './claimant.js';
import { Holding } from './holding.js';
import { NoAnswerError, patienceFor } from './patience.js';
import { WaitQueue } from './wait-queue.js';

/** Gets a key at once or by waiting for it, in turn with the others of this process (rule 10). */
export class Contender {
  readonly #queues = new Map<string, WaitQueue>();

  constructor(
    private readonly store: LeaseStore,
    private readonly agenda: Agenda,
    private readonly random: () => number,
    private readonly claimant: Claimant,
    /** Ends all waiting. */
    private readonly closing: AbortSignal,
  ) {}

  /** Keys that somebody here waits for. */
  get awaited(): number {
    return this.#queues.size;
  }

  /** The key may be free. */
  hint(qualified: string): void {
    this.#queues.get(qualified)?.hint();
  }

  /** Asks once, without waiting for anything but the answer. */
  async ask(attempt: Attempt): Promise<Holding | Refusal> {
    // Those who wait here were first, and were told that it is held.
    const busyFor = this.#queues.get(attempt.target.qualified)?.busyFor ?? 0;
    if (busyFor > 0) return { granted: false, reason: 'held', retryAfterMs: busyFor };
    const end = new EndOfWaiting(this.agenda, this.closing, attempt, this.claimant);
    try {
      const patience = patienceFor(attempt.options.ttl);
      const answer = await end.orAborted(this.claimant.claim(attempt, patience));
      if (answer !== undefined) return answer;
      attempt.options.signal?.throwIfAborted();
      return unavailable(this.closing.reason);
    } finally {
      end.forget();
      this.claimant.giveUp(attempt);
    }
  }

  /** Asks, and asks again when the key may be free, until `deadline` on the monotonic clock. */
  async waitFor(attempt: Attempt, deadline: number): Promise<Holding | Refusal> {
    const { options } = attempt;
    const { clock } = this.agenda;
    const patience = patienceFor(options.ttl);
    // The first request has its full time even when `wait` is shorter: else a short wait on a slow network would
    // never get an answer that no wait at all gets.
    const firstAnswerBy = clock.now() + patience;
    const queue = this.#queue(attempt.target.qualified);
    const place = queue.enter();
    const end = new EndOfWaiting(this.agenda, this.closing, attempt, this.claimant, {
      deadline,
      nudge: () => place.isHead && queue.nudge(),
    });
    let last: Refusal | undefined;
    try {
      await Promise.race([place.turn, end.reached]);
      for (;;) {
        options.signal?.throwIfAborted();
        if (this.closing.aborted) return unavailable(this.closing.reason);
        const here = queue.heldHere;
        const isHere = here !== undefined && (here.isHeld || here.state === 'releasing');
        if (isHere) last = { granted: false, reason: 'held', retryAfterMs: here.remaining };
        const left = deadline - clock.now();
        if (left <= 0 && last !== undefined) return last;
        const inTime = Math.max(left, place.asked === 0 ? firstAnswerBy - clock.now() : 0);
        if (!place.isHead || inTime <= 0) {
          return queue.lastRefusal ?? unavailable(new NoAnswerError(options.wait));
        }
        const seen = queue.hints;
        if (isHere && options.permits === 1) {
          // Its end is a hint; the sleep is only the net.
          await queue.sleep(seen, Math.min(Math.max(here.remaining, 10), left));
          continue;
        }
        place.asked++;
        const answer = await end.orAborted(
          this.claimant.claim(attempt, Math.min(patience, inTime)),
        );
        if (answer === undefined) continue;
        if (answer instanceof Holding) {
          if (options.permits === 1) queue.heldHere = answer;
          return answer;
        }
        if (answer.reason === 'done') return answer;
        // What it was told before outweighs that the last request, cut short, went unanswered.
        const cutShort = answer.cause instanceof NoAnswerError && clock.now() >= deadline;
        if (last === undefined || !cutShort) queue.refused((last = answer));
        const rest = Math.min(queue.pause(place, answer.retryAfterMs), deadline - clock.now());
        if (rest > 0) await queue.sleep(seen, rest);
      }
    } finally {
      end.forget();
      queue.leave(place);
      this.claimant.giveUp(attempt);
    }
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

/** What ends a wait: its deadline, the caller's signal, a shutdown. */
class EndOfWaiting {
  /** The wait is over, for whatever reason. */
  readonly reached: Promise<void>;
  readonly forget: () => void;

  #abort: () => void = () => {};

  constructor(
    agenda: Agenda,
    closing: AbortSignal,
    private readonly attempt: Attempt,
    private readonly claimant: Claimant,
    { deadline = Infinity, nudge = () => {} }: { deadline?: number; nudge?: () => void } = {},
  ) {
    let reach!: () => void;
    this.reached = new Promise<void>((resolve) => (reach = resolve));
    const onAbort = (): void => {
      reach();
      this.#abort();
      nudge();
    };
    const { signal } = attempt.options;
    const limit =
      deadline === Infinity ? undefined : agenda.after(deadline - agenda.clock.now(), reach);
    signal?.addEventListener('abort', onAbort, { once: true });
    closing.addEventListener('abort', onAbort, { once: true });
    this.forget = () => {
      if (limit !== undefined) agenda.cancel(limit);
      signal?.removeEventListener('abort', onAbort);
      closing.removeEventListener('abort', onAbort);
    };
  }

  /** The answer to a claim, or nothing when the caller or a shutdown ended the wait first. */
  async orAborted(claim: Promise<Holding | Refusal>): Promise<Holding | Refusal | undefined> {
    // Not a race with one promise for the whole wait: that would remember every claim of a wait without end.
    const answer = await new Promise<Holding | Refusal | undefined>((resolve) => {
      this.#abort = () => resolve(undefined);
      claim.then(resolve, (error: unknown) => resolve(unavailable(error)));
    });
    // Granted in the very moment of the abort, nobody else would ever give it back.
    if (answer === undefined) this.claimant.abandon(this.attempt);
    return answer;
  }
}
