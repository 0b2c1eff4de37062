import type { Grant, Hold, LeaseStore, OnTurn, Refusal } from '../stores/lease-store.js';
import { SLOW_GRANT } from '../lease.messages.js';
import type { Agenda, Appointment } from './agenda.js';
import { unavailable, type Attempt, type Claimant } from './claimant.js';
import { EndOfWaiting } from './end-of-waiting.js';
import { Holding } from './holding.js';
import { NoAnswerError, patienceFor } from './patience.js';
import { Roster } from './roster.js';
import { WaitQueue, type Place } from './wait-queue.js';

/** Gets a key at once or by waiting for it, in turn with the others of this process (rule 10). */
export class Contender {
  readonly #queues = new Map<string, WaitQueue>();
  readonly #waits = new Roster<EndOfWaiting>();
  #closing: { readonly reason: unknown } | undefined;

  constructor(
    private readonly store: LeaseStore,
    private readonly agenda: Agenda,
    private readonly random: () => number,
    private readonly claimant: Claimant,
    /** The release of a key by this process that is under way, if there is one. */
    private readonly releasing: (qualified: string) => { over(): Promise<void> } | undefined,
  ) {}

  /** Keys that somebody here waits for. */
  get awaited(): number {
    return this.#queues.size;
  }

  /** Ends all waiting. */
  close(reason: unknown): void {
    this.#closing = { reason };
    for (const wait of this.#waits) wait.reach();
  }

  /** The key may be free. */
  hint(qualified: string): void {
    this.#queues.get(qualified)?.hint();
  }

  /** Asks once, without waiting for anything but the answer. Fails only when the caller's own signal aborts. */
  ask(
    attempt: Attempt,
    settle: (answer: Holding | Refusal) => void,
    fail: (reason: unknown) => void,
  ): void {
    const { target, options } = attempt;
    // Those who wait here were first, and were told that it is held.
    const busyFor = this.#queues.get(target.qualified)?.busyFor ?? 0;
    if (busyFor > 0) return settle({ granted: false, reason: 'held', retryAfterMs: busyFor });
    const patience = patienceFor(options.ttl);
    const releasing = this.releasing(target.qualified);
    let asked = 0;
    let limit: Appointment | undefined;
    const end = new EndOfWaiting(options.signal, this.#waits);
    const over = (answer: Holding | Refusal | undefined): void => {
      if (limit !== undefined) this.agenda.cancel(limit);
      end.forget();
      this.claimant.finish(attempt, answer instanceof Holding);
      if (answer !== undefined) settle(answer);
      else if (options.signal?.aborted) fail(options.signal.reason);
      else settle(unavailable(this.#closing?.reason));
    };
    // Not written where it is assigned: V8 keeps what is for longer, and all that it can see with it.
    const giveUp = (): void => over(undefined);
    const claim = (): void => {
      asked++;
      this.claimant.claim(attempt, patience, answered);
    };
    const answered = (answer: Holding | Refusal): void => {
      if (end.isReached) return;
      if (releasing === undefined || asked > 1 || !isHeld(answer)) return over(answer);
      // Given back by ourselves before we asked, and the store had not heard of it.
      let isTimeUp = false;
      limit = this.agenda.after(patience, () => {
        isTimeUp = true;
        over(answer);
      });
      const askAgain = (): void => {
        if (isTimeUp || end.isReached) return;
        this.agenda.cancel(limit!);
        claim();
      };
      releasing.over().then(askAgain, askAgain);
    };
    end.onReached = giveUp;
    claim();
  }

  /** Asks, and asks again when the key may be free, until `deadline` on the monotonic clock. */
  async waitFor(attempt: Attempt, deadline: number): Promise<Holding | Refusal> {
    const queue = this.#queue(attempt.target.qualified);
    const place = queue.enter(attempt);
    const end = new EndOfWaiting(attempt.options.signal, this.#waits);
    let answer: Holding | Refusal | undefined;
    try {
      answer = await this.#wait(queue, place, end, deadline);
      return answer;
    } finally {
      end.forget();
      queue.leave(place);
      this.claimant.finish(attempt, answer instanceof Holding);
    }
  }

  /**
   * When one of us waits for a key that is about to be given back: does both in one request. Nothing when nobody
   * does; else whether the key was freed, as the store says, or a rejection when there is no telling.
   */
  handOver(hold: Hold): Promise<boolean> | undefined {
    if (this.store.handOver === undefined) return undefined;
    const queue = this.#queues.get(hold.key);
    const place = queue?.next;
    if (queue === undefined || place === undefined) return undefined;
    const { attempt } = place;
    const { once, permits, ttl, signal } = attempt.options;
    if (once !== undefined || permits !== 1 || hold.permits !== 1) return undefined;
    // What it has been granted already, or does not want any more, it will find out by itself.
    if (attempt.holding !== undefined || signal?.aborted || this.#closing !== undefined) {
      return undefined;
    }
    let freed!: Promise<boolean>;
    place.asked++;
    place.handed = new Promise((settle) => {
      const onTurn = this.#onTurn(queue, attempt);
      freed = this.claimant.handOver(hold, attempt, patienceFor(ttl), settle, onTurn);
    });
    queue.nudge();
    return freed;
  }

  async #wait(
    queue: WaitQueue,
    place: Place,
    end: EndOfWaiting,
    deadline: number,
  ): Promise<Holding | Refusal> {
    const { attempt } = place;
    const { options } = attempt;
    const { clock } = this.agenda;
    const patience = patienceFor(options.ttl);
    // The first request has its full time even when `wait` is shorter: else a short wait on a slow network would
    // never get an answer that no wait at all gets.
    const firstAnswerBy = clock.now() + patience;
    const onTurn = this.#onTurn(queue, attempt);
    let last: Refusal | undefined;
    // Until it is its turn to speak to the store, or there is no time left for one.
    if (!place.isHead) await this.#before(deadline, end, place.turn);
    for (;;) {
      options.signal?.throwIfAborted();
      if (this.#closing !== undefined) return unavailable(this.#closing.reason);
      if (attempt.holding !== undefined) return this.#taken(queue, attempt.holding);
      const { handed } = place;
      const seen = queue.hints;
      let answer: Holding | Refusal | undefined;
      if (handed !== undefined) {
        const until = last === undefined ? Math.max(deadline, firstAnswerBy) : deadline;
        answer = await this.#before(until, end, handed);
        place.handed = undefined;
        if (answer === undefined && !end.isReached) {
          return last ?? unavailable(new NoAnswerError(options.wait));
        }
      } else {
        const here = queue.heldHere;
        const isHere = here !== undefined && (here.isHeld || here.state === 'releasing');
        if (isHere) last = { granted: false, reason: 'held', retryAfterMs: here.remaining };
        const left = deadline - clock.now();
        if (left <= 0 && last !== undefined) return last;
        const inTime = Math.max(left, place.asked === 0 ? firstAnswerBy - clock.now() : 0);
        if (!place.isHead || inTime <= 0) {
          return queue.lastRefusal ?? unavailable(new NoAnswerError(options.wait));
        }
        if (isHere && options.permits === 1) {
          // Its end is a hint; the sleep is only the net.
          await queue.sleep(seen, Math.min(Math.max(here.remaining, 10), left), end);
          continue;
        }
        place.asked++;
        place.isAsking = true;
        answer = await end.before((settle) =>
          this.claimant.claim(attempt, Math.min(patience, inTime), settle, onTurn),
        );
        place.isAsking = false;
      }
      if (answer === undefined) continue;
      if (answer instanceof Holding) return this.#taken(queue, answer);
      if (answer.reason === 'done') return answer;
      // What it was told before outweighs that the last request, cut short, went unanswered.
      const cutShort = answer.cause instanceof NoAnswerError && clock.now() >= deadline;
      if (last === undefined || !cutShort) queue.refused((last = answer));
      const rest = Math.min(queue.pause(place, answer), deadline - clock.now());
      if (rest > 0) await queue.sleep(seen, rest, end);
    }
  }

  #taken(queue: WaitQueue, holding: Holding): Holding | Refusal {
    // Called, and then paused until it was over: it never had it.
    if (!holding.isHeld && holding.lossReason !== 'max-hold') {
      return unavailable(new Error(SLOW_GRANT(holding.ttl)));
    }
    if (holding.options.permits === 1) queue.heldHere = holding;
    return holding;
  }

  /** What is promised, or nothing when the time is up or the end comes first. */
  async #before<T>(time: number, end: EndOfWaiting, promised: Promise<T>): Promise<T | undefined> {
    const { agenda } = this;
    let limit: Appointment | undefined;
    const value = await end.before<T | undefined>((resolve) => {
      void promised.then(resolve);
      if (time < Infinity)
        limit = agenda.after(time - agenda.clock.now(), () => resolve(undefined));
    });
    if (limit !== undefined) agenda.cancel(limit);
    return value;
  }

  /** The store calls one who stands in line. */
  #onTurn(queue: WaitQueue, attempt: Attempt): OnTurn {
    return (grant?: Grant) => {
      if (grant !== undefined) this.claimant.granted(attempt, grant);
      if (!attempt.over) queue.hint();
    };
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

const isHeld = (answer: Holding | Refusal): boolean =>
  !(answer instanceof Holding) && answer.reason === 'held';
