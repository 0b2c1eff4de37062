import type { Voter } from './voter.js';

/** What has been answered so far. */
export class Tally<Answer> {
  readonly answers = new Map<Voter, Answer>();
  readonly failures = new Map<Voter, unknown>();
  /** Nothing that comes from now on counts. */
  isOver = false;

  constructor(private readonly count: number) {}

  /** How many may still answer. */
  get open(): number {
    return this.isOver ? 0 : this.count - this.answers.size - this.failures.size;
  }

  /** How many gave no answer, and will not in time. */
  get silent(): number {
    return this.count - this.answers.size - this.open;
  }

  countOf(is: (answer: Answer) => boolean): number {
    let count = 0;
    for (const answer of this.answers.values()) if (is(answer)) count++;
    return count;
  }
}

export interface Ballot<Answer, Verdict> {
  readonly voters: readonly Voter[];
  readonly question: (voter: Voter) => Promise<Answer>;
  /** Called after every answer. Has to have a verdict when the tally is over. */
  readonly decide: (tally: Tally<Answer>) => Verdict | undefined;
  /** Monotonic time. */
  readonly until: number;
  /** An answer came after the verdict. */
  readonly onLate?: (voter: Voter, answer: Answer) => void;
  /** Told of each question, so that somebody waits for those that are answered after the verdict. */
  readonly underWay: { add(begun: Promise<unknown>): unknown };
}

/**
 * Asks all nodes at once and is done as soon as there is a verdict: a node that is down or frozen costs nobody the time
 * that it takes to find out.
 */
export function vote<Answer, Verdict>(ballot: Ballot<Answer, Verdict>): Promise<Verdict> {
  const { voters, question, decide, until, onLate, underWay } = ballot;
  return new Promise((resolve, reject) => {
    const tally = new Tally<Answer>(voters.length);
    let isDecided = false;
    const look = (): void => {
      if (isDecided) return;
      if (tally.open === 0) tally.isOver = true;
      try {
        const verdict = decide(tally);
        if (verdict === undefined) return;
        resolve(verdict);
      } catch (error) {
        reject(error);
      }
      isDecided = true;
      clearTimeout(limit);
    };
    const limit = setTimeout(
      () => {
        tally.isOver = true;
        look();
      },
      Math.max(0, until - performance.now()),
    ).unref();
    const answered = (voter: Voter, answer: Answer): void => {
      if (isDecided) return onLate?.(voter, answer);
      tally.answers.set(voter, answer);
      look();
    };
    for (const voter of voters) {
      const asked = question(voter).then(
        (answer) => answered(voter, answer),
        (error: unknown) => {
          if (!isDecided) tally.failures.set(voter, error);
          look();
        },
      );
      underWay.add(asked);
    }
  });
}
