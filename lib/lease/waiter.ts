import { AsyncResource } from 'node:async_hooks';
import { SLOW_GRANT } from '../lease.messages.js';
import type { Grant, OnTurn, Refusal } from '../stores/lease-store.js';
import { unavailable, type Attempt } from './claimant.js';
import { Holding } from './holding.js';
import { NoAnswerError, patienceFor } from './patience.js';
import { Seeker, type Contest, type Found } from './seeker.js';
import type { WaitQueue } from './wait-queue.js';

/** Nobody here asks sooner than this after a holder of this process, whose end is told anyway. */
const NAP_AT_LEAST = 10;

/**
 * One who waits for a key, in turn with the others of its process (rule 10). Whatever happens to it (it becomes the
 * head of its queue, a hint, an answer, a time that came) makes it look again; where it is between two looks:
 *
 * ```
 *   queued ──▶ head: looks ──▶ asking    a claim of its own is under way
 *                      ├─────▶ handed    the holder, who is one of us, hands the key over to it
 *                      └─────▶ asleep    until a hint, or for as long as the store's answer is good for
 * ```
 */
export class Waiter extends Seeker {
  #state: 'queued' | 'looking' | 'asking' | 'handed' | 'asleep' = 'queued';
  /** How often it asked. */
  asked = 0;
  #last: Refusal | undefined;
  #seen = 0;
  #onTurn: OnTurn | undefined;
  readonly #patience: number;
  /** What it does is done in the context of who asked, not of whoever woke it. */
  readonly #own = new AsyncResource('LeaseWaiter', { requireManualDestroy: true });
  /**
   * The first request has its full time even when `wait` is shorter: else a short wait on a slow network would never
   * get an answer that no wait at all gets.
   */
  readonly #firstAnswerBy: number;

  /** @param deadline - until when it waits, on the monotonic clock */
  constructor(
    contest: Contest,
    private readonly queue: WaitQueue,
    attempt: Attempt,
    private readonly deadline: number,
    found: Found,
    failed: (reason: unknown) => void,
  ) {
    super(contest, attempt, found, failed);
    this.#patience = patienceFor(attempt.options.ttl);
    this.#firstAnswerBy = contest.agenda.clock.now() + this.#patience;
  }

  /** Takes its place in the queue. */
  enter(): void {
    this.queue.enter(this);
    // It may be over before it began: nobody is told by a signal that was aborted before.
    const isOver = this.attempt.options.signal?.aborted || this.contest.closing !== undefined;
    if (this.#isHead || isOver) this.#look();
    else this.#wakeAt(this.deadline);
  }

  /** It is not its turn yet. */
  get isQueued(): boolean {
    return this.#state === 'queued';
  }

  /** It is its turn to speak to the store. */
  called(): void {
    if (this.#state === 'queued') this.#look();
  }

  /** The key may be free. */
  wake(): void {
    if (this.#state === 'asleep') this.#look();
  }

  /** Its deadline came, or the end of its sleep. */
  keep(): void {
    // Or it was called meanwhile, and has it.
    const isUnanswered = this.#state === 'handed' && this.attempt.holding === undefined;
    if (isUnanswered) this.end(this.#last ?? this.#noAnswer());
    else this.#look();
  }

  /** Whether the holder may hand the key over to it: it wants it as it is, and is not about to get it otherwise. */
  get canBeHanded(): boolean {
    const { holding, options } = this.attempt;
    const isPlain = options.once === undefined && options.permits === 1;
    return this.#state === 'asleep' && isPlain && holding === undefined && !options.signal?.aborted;
  }

  /** The key is being handed over to it: what comes of that is its next answer. */
  expectHandOver(): void {
    this.asked++;
    this.#state = 'handed';
    const { deadline } = this;
    this.#wakeAt(this.#last === undefined ? Math.max(deadline, this.#firstAnswerBy) : deadline);
  }

  /** The store calls one who stands in line. */
  get onTurn(): OnTurn {
    if (this.#onTurn !== undefined) return this.#onTurn;
    const onTurn = (grant?: Grant): void => {
      if (grant !== undefined) this.contest.claimant.granted(this.attempt, grant);
      if (!this.attempt.over) this.queue.hint();
    };
    this.#onTurn = onTurn;
    return onTurn;
  }

  answered(answer: Holding | Refusal): void {
    this.#own.runInAsyncScope(this.#hear, this, answer);
  }

  #hear(answer: Holding | Refusal): void {
    if (this.isOver) return;
    if (answer instanceof Holding) return this.#take(answer);
    if (answer.reason === 'done') return this.end(answer);
    const { queue, deadline } = this;
    const left = deadline - this.#now;
    // What it was told before outweighs that the last request, cut short, went unanswered.
    const cutShort = answer.cause instanceof NoAnswerError && left <= 0;
    if (this.#last === undefined || !cutShort) queue.refused((this.#last = answer));
    const rest = Math.min(queue.pause(this, answer), left);
    if (rest > 0) this.#sleep(rest);
    else this.#look();
  }

  protected override left(): void {
    this.queue.leave(this);
  }

  get #now(): number {
    return this.contest.agenda.clock.now();
  }

  get #isHead(): boolean {
    return this.queue.head === this;
  }

  #look(): void {
    this.#own.runInAsyncScope(this.#lookAround, this);
  }

  #lookAround(): void {
    this.#state = 'looking';
    const { contest, queue, attempt } = this;
    const { options } = attempt;
    if (options.signal?.aborted || contest.closing !== undefined) return this.giveUp();
    if (attempt.holding !== undefined) return this.#take(attempt.holding);
    this.#seen = queue.hints;
    const here = queue.heldHere;
    const isHere = here !== undefined && (here.isHeld || here.state === 'releasing');
    if (isHere) this.#last = { granted: false, reason: 'held', retryAfterMs: here.remaining };
    const now = this.#now;
    const left = this.deadline - now;
    if (left <= 0 && this.#last !== undefined) return this.end(this.#last);
    const inTime = Math.max(left, this.asked === 0 ? this.#firstAnswerBy - now : 0);
    if (!this.#isHead || inTime <= 0) return this.end(queue.lastRefusal ?? this.#noAnswer());
    if (isHere && options.permits === 1) {
      // Its end is a hint; the sleep is only the net.
      return this.#sleep(Math.min(Math.max(here.remaining, NAP_AT_LEAST), left));
    }
    this.asked++;
    this.#state = 'asking';
    contest.agenda.cancel(this);
    contest.claimant.claim(attempt, Math.min(this.#patience, inTime), this, this.onTurn);
  }

  /** Until a hint comes, at most for `ms`; not at all when one came since it looked. */
  #sleep(ms: number): void {
    this.queue.watch();
    if (this.queue.hints !== this.#seen) return this.#look();
    this.#state = 'asleep';
    this.#wakeAt(this.#now + ms);
  }

  #take(holding: Holding): void {
    // Called, and then paused until it was over: it never had it.
    if (!holding.isHeld && holding.lossReason !== 'max-hold') {
      return this.end(unavailable(new Error(SLOW_GRANT(holding.ttl))));
    }
    if (holding.options.permits === 1) this.queue.heldHere = holding;
    this.end(holding);
  }

  #wakeAt(time: number): void {
    const { agenda } = this.contest;
    if (time < Infinity) agenda.schedule(this, time);
    else agenda.cancel(this);
  }

  #noAnswer(): Refusal {
    return unavailable(new NoAnswerError(this.attempt.options.wait));
  }
}
