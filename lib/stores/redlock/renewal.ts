import type { Hold, RenewOutcome } from '../lease-store.js';
import { vote, type Ballot, type Tally } from './ballot.js';
import { majorityOf, type NodeRecord, type RenewVote, type Voter } from './voter.js';

const PATIENCE_AT_MOST = 2_000;
const LOOK_AT_ALL = 250;

export interface RenewalParts {
  readonly voters: readonly Voter[];
  readonly underWay: Ballot<unknown, unknown>['underWay'];
}

interface Renewed {
  readonly outcomes: readonly RenewOutcome[];
  readonly told: ReadonlyMap<Voter, readonly RenewVote[]>;
}

/** Renews on all nodes, and gives those back what they lost that a majority has. */
export class Renewal {
  readonly #voters: readonly Voter[];
  readonly #underWay: RenewalParts['underWay'];
  /** Tokens that a node is being given back, and how often; those that were released meanwhile are taken out. */
  readonly #healing = new Map<string, number>();

  constructor({ voters, underWay }: RenewalParts) {
    this.#voters = voters;
    this.#underWay = underWay;
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    if (holds.length === 0) return [];
    const shortest = Math.min(...holds.map(({ ttl }) => ttl));
    const since = performance.now();
    // Sooner than the holder gives up, so that one hold without a verdict does not cost the others theirs.
    const until = since + Math.min(shortest / 8, PATIENCE_AT_MOST);
    const renewed = vote<readonly RenewVote[], Renewed>({
      voters: this.#voters,
      question: (voter) => voter.renew(holds, until),
      decide: (tally) => {
        const outcomes = this.#decide(tally, holds.length);
        return outcomes && { outcomes, told: new Map(tally.answers) };
      },
      until,
      onLate: (voter, votes) => {
        const told = new Map([[voter, votes]]);
        this.#underWay.add(
          renewed.then(({ outcomes }) => this.#healAll(holds, outcomes, told, since)),
        );
      },
      underWay: this.#underWay,
    });
    const { outcomes, told } = await renewed;
    this.#healAll(holds, outcomes, told, since);
    return outcomes;
  }

  /** The token is being released: nothing of it is given to any node any more. */
  forget(token: string): void {
    this.#healing.delete(token);
  }

  #decide(tally: Tally<readonly RenewVote[]>, count: number): RenewOutcome[] | undefined {
    const outcomes: RenewOutcome[] = [];
    const majority = majorityOf(this.#voters.length);
    for (let i = 0; i < count; i++) {
      const renewed = tally.countOf((votes) => votes[i] === 'renewed');
      const lost = tally.countOf((votes) => votes[i] === 'absent' || votes[i] === 'taken');
      if (renewed >= majority) outcomes.push('renewed');
      else if (lost >= majority) outcomes.push('gone');
      else if (tally.isOver) outcomes.push('unknown');
      else return undefined;
    }
    return outcomes;
  }

  #healAll(
    holds: readonly Hold[],
    outcomes: readonly RenewOutcome[],
    told: ReadonlyMap<Voter, readonly RenewVote[]>,
    since: number,
  ): void {
    holds.forEach((hold, i) => {
      if (outcomes[i] !== 'renewed') return;
      const without = [...told].flatMap(([voter, votes]) => (votes[i] === 'absent' ? [voter] : []));
      if (without.length === 0) return;
      // Best effort: the next renewal does it if this does not.
      this.#underWay.add(this.#heal(hold, without, since + hold.ttl / 2).catch(() => {}));
    });
  }

  async #heal(hold: Hold, without: readonly Voter[], until: number): Promise<void> {
    const { token } = hold;
    this.#healing.set(token, (this.#healing.get(token) ?? 0) + 1);
    const number = this.#healing.get(token);
    const isWanted = (): boolean => this.#healing.get(token) === number;
    try {
      const record = await this.#recordOf(hold, until);
      if (record === undefined || !isWanted()) return;
      await Promise.allSettled(
        without.map((voter) => voter.heal(hold, record, { until, isWanted })),
      );
    } finally {
      if (isWanted()) this.#healing.delete(token);
    }
  }

  /**
   * As one of a majority has it who was told the fence it was handed out with: the highest, if an earlier try of the same
   * token left another. A node that does not answer is not waited for.
   */
  #recordOf({ key, token }: Hold, until: number): Promise<NodeRecord | undefined> {
    const now = performance.now();
    const majority = majorityOf(this.#voters.length);
    return vote<NodeRecord | undefined, { record: NodeRecord | undefined }>({
      voters: this.#voters,
      question: (voter) => voter.inspect(key),
      decide: ({ answers, isOver }) => {
        if (!isOver) return undefined;
        if (answers.size < majority) return { record: undefined };
        const [record] = [...answers.values()]
          .filter((one) => one !== undefined)
          .filter((one) => one.token === token && one.settled)
          .toSorted((a, b) => b.fence - a.fence);
        return { record };
      },
      until: now + Math.min((until - now) / 2, LOOK_AT_ALL),
      underWay: this.#underWay,
    }).then(({ record }) => record);
  }
}
