import type { Agenda } from './agenda.js';
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

/**
 * The answer of `ask`, or a {@link NoAnswerError} after `ms`. What comes later goes to `late`, so that a grant
 * nobody waits for any more can be given back (rule 2). Never rejects twice, never leaves a rejection unhandled.
 */
export function withPatience<T>(
  agenda: Agenda,
  ms: number,
  ask: () => Promise<T>,
  late: (answer: T | undefined) => void = () => {},
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let waiting = true;
    const limit = agenda.after(ms, () => {
      waiting = false;
      reject(new NoAnswerError(ms));
    });
    const settle = (): boolean => {
      agenda.cancel(limit);
      const was = waiting;
      waiting = false;
      return was;
    };
    let asked: Promise<T>;
    try {
      asked = Promise.resolve(ask());
    } catch (error) {
      settle();
      reject(error);
      return;
    }
    asked.then(
      (answer) => (settle() ? resolve(answer) : late(answer)),
      (error) => (settle() ? reject(error) : late(undefined)),
    );
  });
}
