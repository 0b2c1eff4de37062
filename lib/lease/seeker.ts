import type { Refusal } from '../stores/lease-store.js';
import type { Agenda, Appointment } from './agenda.js';
import { unavailable, type Attempt, type Claimant } from './claimant.js';
import { Holding } from './holding.js';
import type { Roster, Seated } from './roster.js';

/** Where keys are sought. */
export interface Contest {
  readonly agenda: Agenda;
  readonly claimant: Claimant;
  readonly seekers: Roster<Seeker>;
  /** All seeking has ended, and why. */
  readonly closing: { readonly reason: unknown } | undefined;
}

export type Found = (answer: Holding | Refusal) => void;

const ONCE = { once: true };

/** One who seeks a key, until it has it, is refused, or is called off: by its own signal or a shutdown. */
export abstract class Seeker implements Appointment, Seated {
  // Appointment: owned by the agenda
  due = 0;
  slot = -1;
  /** Owned by the roster. */
  seat = -1;

  #isOver = false;

  /**
   * @param found - told what came of it
   * @param failed - told instead when the caller's own signal aborts
   */
  constructor(
    protected readonly contest: Contest,
    readonly attempt: Attempt,
    private readonly found: Found,
    private readonly failed: (reason: unknown) => void,
  ) {
    contest.seekers.add(this);
    attempt.options.signal?.addEventListener('abort', this, ONCE);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** What came of a request. */
  abstract answered(answer: Holding | Refusal): void;

  /** The time came that it had set itself. */
  abstract keep(): void;

  /** For the signal: an object costs less than a function of its own. */
  handleEvent(): void {
    this.giveUp();
  }

  /** Its signal was aborted, or nothing is sought here any more. */
  giveUp(): void {
    if (!this.#finish(false)) return;
    const { signal } = this.attempt.options;
    if (signal?.aborted) this.failed(signal.reason);
    else this.found(unavailable(this.contest.closing?.reason));
    this.left();
  }

  protected end(answer: Holding | Refusal): void {
    if (!this.#finish(answer instanceof Holding)) return;
    this.found(answer);
    this.left();
  }

  /** It is over for this one: others may be next. */
  protected left(): void {}

  #finish(isTaken: boolean): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    const { agenda, claimant, seekers } = this.contest;
    agenda.cancel(this);
    seekers.delete(this);
    this.attempt.options.signal?.removeEventListener('abort', this);
    claimant.finish(this.attempt, isTaken);
    return true;
  }
}
