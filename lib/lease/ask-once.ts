import type { Refusal } from '../stores/lease-store.js';
import type { Attempt } from './claimant.js';
import { Holding } from './holding.js';
import { patienceFor } from './patience.js';
import { Seeker, type Contest, type Found } from './seeker.js';

/**
 * Asks for a key once, without waiting for anything but the answer. Only when the key was given back by this process
 * before, and the store had not heard of it, it asks again when it has.
 */
export class AskOnce extends Seeker {
  readonly #patience: number;
  #asked = 0;
  #refusal: Refusal | undefined;

  /** @param releasing - the release of the key by this process that is under way, if there is one */
  constructor(
    contest: Contest,
    attempt: Attempt,
    private readonly releasing: { over(): Promise<void> } | undefined,
    found: Found,
    failed: (reason: unknown) => void,
  ) {
    super(contest, attempt, found, failed);
    this.#patience = patienceFor(attempt.options.ttl);
  }

  ask(): void {
    this.#asked++;
    this.contest.claimant.claim(this.attempt, this.#patience, this);
  }

  answered(answer: Holding | Refusal): void {
    if (this.isOver) return;
    const { releasing } = this;
    const isHeld = !(answer instanceof Holding) && answer.reason === 'held';
    if (releasing === undefined || this.#asked > 1 || !isHeld) return this.end(answer);
    const { agenda } = this.contest;
    this.#refusal = answer;
    agenda.schedule(this, agenda.clock.now() + this.#patience);
    const askAgain = (): void => {
      if (this.isOver) return;
      agenda.cancel(this);
      this.ask();
    };
    releasing.over().then(askAgain, askAgain);
  }

  /** The release takes too long. */
  keep(): void {
    this.end(this.#refusal!);
  }
}
