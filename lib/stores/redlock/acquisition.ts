import { setTimeout } from 'node:timers/promises';
import {
  REDLOCK_NOT_SETTLED,
  REDLOCK_NO_MAJORITY,
  REDLOCK_QUARANTINE,
} from '../../lease.messages.js';
import type { UnderWay } from '../../lease/under-way.js';
import type { Claim, Grant, Hold, Refusal } from '../lease-store.js';
import { vote, type Tally } from './ballot.js';
import { majorityOf, type Vote, type Voter, type Wanted } from './voter.js';

/** As often a claim is sent again that met others at the same moment, so that nobody got a majority. */
const ROUNDS = 6;
const GIVE_BACK_PATIENCE = 2_000;
const GIVE_BACK_PAUSE = 50;

/** Of all tokens of this process: a request of an earlier one may be on its way when nobody here remembers it. */
let rounds = 0;

/** What came of asking all nodes once. */
interface Round {
  /** Who was sent the claim: one that was down was not. */
  readonly asked: ReadonlySet<Voter>;
  readonly votes: ReadonlyMap<Voter, Vote>;
  readonly outcome: 'granted' | 'held' | 'done' | 'unavailable';
  /** Nobody can have a majority: several asked at the same moment. */
  readonly isSplit: boolean;
  readonly cause: unknown;
}

export interface AcquisitionParts {
  readonly voters: readonly Voter[];
  readonly underWay: UnderWay;
  readonly random: () => number;
  /** Throws when the nodes turn out not to be what they should. */
  readonly check: () => void;
}

/**
 * One owner token's way to a key, over as many claims as it takes (rule 2):
 *
 * ```
 *   asks all nodes ──▶ a majority granted ──▶ tells all of them the highest fence ──▶ a majority knows it: handed out
 *                  └─▶ else ◀── given back everywhere ◀───────────────────────────────── else
 * ```
 */
export class Acquisition {
  /** Whatever is granted from now on is nobody's. */
  #isOver = false;
  /** Of which round an answer or a giving back is: what belongs to an earlier one leaves this one alone. */
  #round = 0;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #hold: Hold;
  readonly #voters: readonly Voter[];
  readonly #parts: AcquisitionParts;
  #underWay = 0;

  /** @param onOver - no answer can come any more: nothing needs to be remembered of it */
  constructor(
    { key, token, ttl, permits }: Hold,
    parts: AcquisitionParts,
    private readonly onOver: () => void,
  ) {
    this.#hold = { key, token, ttl, permits };
    this.#voters = parts.voters;
    this.#parts = parts;
  }

  /** One at a time: two that ran at once could settle on two fences. */
  try(claim: Claim): Promise<Grant | Refusal> {
    const began = performance.now();
    const tried = this.#turn.then(() => this.#try(claim, began));
    this.#turn = tried.catch(() => {});
    this.#add(tried);
    return tried;
  }

  /** It is being released: a grant that comes late is given back (rule 2). */
  finish(): void {
    this.#isOver = true;
  }

  async #try(claim: Claim, began: number): Promise<Grant | Refusal> {
    this.#isOver = false;
    // At least half of the ttl is left when the lease is handed out, less the margin of its holder (rule 3).
    const until = began + Math.min(claim.patience, claim.ttl / 2);
    for (let rounds = 1; ; rounds++) {
      const since = performance.now();
      const round = await this.#ask(claim, until);
      if (round.outcome === 'granted') return this.#settle(round, until);
      if (round.outcome === 'unavailable' && isHeldAlready(round)) throw round.cause;
      this.#giveBack(round);
      const { isSplit } = round;
      // The longer it takes to ask, the further apart those have to be who met.
      const pause = (1 + performance.now() - since) * 2 ** rounds * this.#parts.random();
      const isLast = rounds === ROUNDS || performance.now() + pause >= until || this.#isOver;
      if (!isSplit || isLast) {
        this.#isOver = true;
        return this.#refusal(round);
      }
      await setTimeout(pause, undefined, { ref: false });
    }
  }

  async #ask(claim: Claim, until: number): Promise<Round> {
    const number = (this.#round = ++rounds);
    const isCurrent = (): boolean => number === this.#round && !this.#isOver;
    const asked = new Set<Voter>();
    let verdict: Round | undefined;
    const wantedBy = (voter: Voter): Wanted => ({
      until,
      // Also after a majority granted it: the more of them have it, the more may go down under it.
      isWanted: () => {
        const isWanted = isCurrent() && (verdict?.outcome ?? 'granted') === 'granted';
        if (isWanted) asked.add(voter);
        return isWanted;
      },
    });
    const round = await vote<Vote, Round>({
      voters: this.#voters,
      question: (voter) => voter.claim(claim, wantedBy(voter), number),
      decide: (tally) => (verdict = this.#decide(tally, asked)),
      until,
      onLate: (voter, answer) => {
        if (answer.kind !== 'granted') return;
        if (!isCurrent()) this.#free(voter, number);
        else if (verdict!.outcome === 'granted') {
          this.#add(voter.settle(this.#hold, this.#fenceOf(verdict!), number).catch(() => {}));
        }
      },
      underWay: this.#all,
    });
    try {
      this.#parts.check();
    } catch (error) {
      this.#giveBack(round);
      throw error;
    }
    return round;
  }

  #decide(tally: Tally<Vote>, asked: ReadonlySet<Voter>): Round | undefined {
    const { answers: votes, open } = tally;
    const majority = majorityOf(this.#voters.length);
    const of = (kind: Vote['kind']): number => tally.countOf((vote) => vote.kind === kind);
    const end = (outcome: Round['outcome'], isSplit = false): Round => ({
      asked,
      votes: new Map(votes),
      outcome,
      isSplit,
      cause: outcome === 'unavailable' ? this.#cause(tally) : undefined,
    });
    // Marks are written to a majority, and any two have a node in common: one that saw it is enough.
    if (of('done') > 0) return end('done');
    if (of('granted') >= majority) return end('granted');
    const held = of('held');
    const mute = tally.silent + of('late') + of('quarantined');
    if (mute >= majority) return end('unavailable');
    if (held < majority && open > 0) return undefined;
    return end(held > 0 ? 'held' : 'unavailable', mostByOne(votes) + mute + open < majority);
  }

  /** The highest fence of the majority becomes known to a majority, each under ownership, before anybody gets it (rule 8). */
  async #settle(round: Round, until: number): Promise<Grant | Refusal> {
    const majority = majorityOf(this.#voters.length);
    const fence = this.#fenceOf(round);
    const isSettled = await vote<string, boolean>({
      // Behind the claim on the same connection: where that is still under way, it is not any more by then.
      voters: this.#voters.filter((voter) => round.votes.get(voter)?.kind !== 'held'),
      question: (voter) => voter.settle(this.#hold, fence, this.#round),
      decide: (tally) => {
        const settled = tally.countOf((answer) => answer === 'yes');
        if (settled >= majority) return true;
        return settled + tally.open < majority ? false : undefined;
      },
      until,
      underWay: this.#all,
    });
    if (isSettled && !this.#isOver && performance.now() < until) return { granted: true, fence };
    const cause = new Error(REDLOCK_NOT_SETTLED(majority, this.#voters.length));
    // Handed out before, so that it is not ours to give back: no telling.
    if (isHeldAlready(round) && !this.#isOver) throw cause;
    this.#giveBack(round);
    this.#isOver = true;
    return { granted: false, reason: 'unavailable', cause };
  }

  /**
   * One that was handed out before stays the same (rule 2): then a majority has it, and nobody else had the key since. One
   * that fewer were told may be of a round that came to nothing, with higher ones handed out to others since (rule 8).
   */
  #fenceOf({ votes }: Round): number {
    const granted = [...votes.values()].filter((vote) => vote.kind === 'granted');
    const settled = granted.filter((vote) => vote.settled);
    const stays = settled.length >= majorityOf(this.#voters.length);
    return Math.max(...(stays ? settled : granted).map((vote) => vote.fence));
  }

  #refusal({ votes, outcome, isSplit, cause }: Round): Refusal {
    if (outcome === 'done') return { granted: false, reason: 'done' };
    if (outcome === 'held') {
      const waits = waitsOf(votes, 'held');
      // So many of them have to be free that they are a majority with those who may be free already.
      const more = majorityOf(this.#voters.length) - (this.#voters.length - waits.length);
      const retryAfterMs = waits[Math.max(0, more - 1)]!;
      return { granted: false, reason: 'held', ...(isSplit ? {} : { retryAfterMs }) };
    }
    const [retryAfterMs] = waitsOf(votes, 'quarantined');
    const unavailable = { granted: false, reason: 'unavailable', cause } as const;
    return retryAfterMs === undefined ? unavailable : { ...unavailable, retryAfterMs };
  }

  #cause({ answers, failures, silent }: Tally<Vote>): Error {
    const count = this.#voters.length;
    const waits = waitsOf(answers, 'quarantined');
    const cause = failures.values().next().value;
    if (waits.length + majorityOf(count) > count) {
      return new Error(REDLOCK_QUARANTINE(waits.length, count, waits[0]!), { cause });
    }
    const late = [...answers.values()].filter(({ kind }) => kind === 'late').length;
    return new Error(REDLOCK_NO_MAJORITY(silent + late, count), { cause });
  }

  /** At once, and everywhere where it may have been granted. Behind the claim, where that is still under way. */
  #giveBack({ asked, votes }: Round): void {
    for (const voter of asked) {
      const kind = votes.get(voter)?.kind ?? 'granted';
      if (kind === 'granted') this.#free(voter, this.#round);
    }
  }

  #free(voter: Voter, round: number): void {
    this.#add(this.#freeSoon(voter, round));
  }

  /** A connection that breaks may take the request with it. What cannot be given back is left to its ttl. */
  async #freeSoon(voter: Voter, round: number): Promise<void> {
    const isWanted = (): boolean => round === this.#round;
    const until = performance.now() + GIVE_BACK_PATIENCE;
    while (isWanted() && performance.now() < until) {
      try {
        await voter.release(this.#hold, {}, { until, isWanted }, round);
        return;
      } catch {
        await setTimeout(GIVE_BACK_PAUSE, undefined, { ref: false });
      }
    }
  }

  #add(begun: Promise<unknown>): void {
    this.#underWay++;
    const end = (): void => {
      if (--this.#underWay === 0) this.onOver();
    };
    begun.then(end, end);
    void this.#parts.underWay.add(begun).catch(() => {});
  }

  readonly #all = { add: (begun: Promise<unknown>): void => this.#add(begun) };
}

const isHeldAlready = ({ votes }: Round): boolean =>
  [...votes.values()].some((vote) => vote.kind === 'granted' && vote.settled);

/** Shortest first. */
function waitsOf(votes: ReadonlyMap<Voter, Vote>, kind: 'held' | 'quarantined'): number[] {
  return [...votes.values()]
    .flatMap((vote) => (vote.kind === kind && 'waitMs' in vote ? [vote.waitMs] : []))
    .toSorted((a, b) => a - b);
}

function mostByOne(votes: ReadonlyMap<Voter, Vote>): number {
  const counts = new Map<string, number>();
  for (const vote of votes.values()) {
    if (vote.kind === 'held') counts.set(vote.by, (counts.get(vote.by) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
