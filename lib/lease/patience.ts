import type { Agenda, Appointment } from './agenda.js';
import { NO_ANSWER } from '../lease.messages.js';

/** No answer is waited for longer than this, however long the ttl. */
export const PATIENCE_AT_MOST = 5_000;

/** How long the answer to a claim or a release is waited for. */
export const patienceFor = (ttl: number): number => Math.min(ttl / 3, PATIENCE_AT_MOST);

/** The store did not answer in the time we were ready to wait. It may still act on what it was sent. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';

  constructor(ms: number) {
    super(NO_ANSWER(ms));
  }
}

/** Who asked the store. Exactly one of the first two is called; the last, if at all, after `failed`. */
export interface Asker<T> {
  answered(answer: T): void;
  failed(error: unknown): void;
  /** The answer came after nobody waited for it, or did not come at all. */
  late?(answer: T | undefined): void;
}

class Question<T> implements Appointment {
  // Appointment: owned by the agenda
  due = 0;
  slot = -1;

  #waits = true;

  constructor(
    private readonly agenda: Agenda,
    private readonly ms: number,
    private readonly asker: Asker<T>,
  ) {}

  put(ask: () => Promise<T>, now: number): void {
    this.agenda.schedule(this, now + this.ms);
    let asked: Promise<T>;
    try {
      asked = ask();
      if (typeof asked?.then !== 'function') asked = Promise.resolve(asked);
    } catch (error) {
      this.#failed(error);
      return;
    }
    asked.then(
      (answer) => this.#answered(answer),
      (error: unknown) => this.#failed(error),
    );
  }

  /** Its time is up. */
  keep(): void {
    this.#waits = false;
    this.asker.failed(new NoAnswerError(this.ms));
  }

  #answered(answer: T): void {
    if (!this.#end()) return this.asker.late?.(answer);
    this.asker.answered(answer);
  }

  #failed(error: unknown): void {
    if (!this.#end()) return this.asker.late?.(undefined);
    this.asker.failed(error);
  }

  #end(): boolean {
    this.agenda.cancel(this);
    const waited = this.#waits;
    this.#waits = false;
    return waited;
  }
}

/**
 * Puts a question to the store; after `ms` without an answer it has failed by a {@link NoAnswerError}. What comes
 * later goes to `late`, so that a grant nobody waits for any more can be given back (rule 2). Never leaves a
 * rejection unhandled.
 */
export function askPatiently<T>(
  agenda: Agenda,
  ms: number,
  ask: () => Promise<T>,
  asker: Asker<T>,
  now = agenda.clock.now(),
): void {
  new Question(agenda, ms, asker).put(ask, now);
}

/** The same as a promise. */
export function withPatience<T>(
  agenda: Agenda,
  ms: number,
  ask: () => Promise<T>,
  late: (answer: T | undefined) => void = () => {},
): Promise<T> {
  return new Promise<T>((answered, failed) => {
    askPatiently(agenda, ms, ask, { answered, failed, late });
  });
}
