import { NO_TELLING, SLOW_GRANT } from '../lease.messages.js';
import type { Claim, Grant, Hold, LeaseStore, Refusal } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { Holding } from './holding.js';
import type { Target } from './key.js';
import { patienceFor, withPatience } from './patience.js';
import type { ResolvedOptions } from './resolve-options.js';
import { Trust } from './trust.js';
import type { UnderWay } from './under-way.js';

/** One try to get one key, over as many requests as it takes: all of them carry the same token (rule 2). */
export interface Attempt {
  readonly target: Target;
  readonly token: string;
  readonly options: ResolvedOptions;
  /** A request went out whose answer never came: the store may have granted it. */
  inDoubt: boolean;
  /** Nobody waits any more: what is granted now is given back. */
  over: boolean;
  /** What came of it. */
  holding: Holding | undefined;
}

/** What the store granted, and the trust that it earned. */
export interface Granted {
  readonly hold: Hold;
  readonly fence: number;
  readonly trust: Trust;
  /** Monotonic time before the request left. */
  readonly sentAt: number;
}

export interface ClaimantParts {
  readonly store: LeaseStore;
  readonly agenda: Agenda;
  readonly instance: string;
  readonly token: () => string;
  readonly underWay: UnderWay;
  readonly hold: (attempt: Attempt, granted: Granted) => Holding;
  /** A key was freed that was never held here. */
  readonly onFreed: (qualified: string) => void;
}

export const unavailable = (cause: unknown): Refusal => ({
  granted: false,
  reason: 'unavailable',
  cause,
});

/** Asks the store for keys, and gives back what comes too late to be wanted. */
export class Claimant {
  readonly #parts: ClaimantParts;

  constructor(parts: ClaimantParts) {
    this.#parts = parts;
  }

  attempt(target: Target, options: ResolvedOptions): Attempt {
    const token = this.#parts.token();
    return { target, token, options, inDoubt: false, over: false, holding: undefined };
  }

  /** One request to the store. Never rejects: not to know is an answer too (rule 9). */
  claim(attempt: Attempt, patience: number): Promise<Holding | Refusal> {
    return this.#parts.underWay.add(this.#send(attempt, patience));
  }

  /** Nobody waits for the attempt any more, whatever came of it. */
  giveUp(attempt: Attempt): void {
    attempt.over = true;
    if (attempt.inDoubt) this.giveBack(holdOf(attempt));
  }

  /** As {@link giveUp}, when it may just have been granted and nobody took it. */
  abandon(attempt: Attempt): void {
    attempt.over = true;
    const { holding } = attempt;
    if (!holding?.beginRelease()) return;
    this.#parts.agenda.cancel(holding);
    holding.endRelease();
    this.giveBack(holding.hold);
  }

  /** Best effort, in the background: the ttl does it if this does not. */
  giveBack(hold: Hold): void {
    const { agenda, store, onFreed, underWay } = this.#parts;
    const given = withPatience(agenda, patienceFor(hold.ttl), () => store.release(hold, {})).then(
      (freed) => freed && onFreed(hold.key),
      () => {},
    );
    void underWay.add(given);
  }

  async #send(attempt: Attempt, patience: number): Promise<Holding | Refusal> {
    const { agenda, store, instance } = this.#parts;
    const { once } = attempt.options;
    const hold = holdOf(attempt);
    const claim: Claim = { ...hold, instance, patience, ...(once === undefined ? {} : { once }) };
    // rule 3: both clocks are read before the request leaves
    const mono = agenda.clock.now();
    const wall = agenda.clock.wall();
    let answer: Grant | Refusal;
    try {
      answer = await withPatience(
        agenda,
        patience,
        () => store.acquire(claim),
        () => this.#late(attempt, hold),
      );
    } catch (error) {
      attempt.inDoubt = true;
      this.#late(attempt, hold);
      return unavailable(error);
    }
    if (isGrant(answer)) {
      const trust = new Trust(agenda.clock, mono, wall, hold.ttl);
      attempt.inDoubt = attempt.over || trust.remaining <= 0;
      if (!attempt.inDoubt)
        return this.#hold(attempt, { hold, fence: answer.fence, trust, sentAt: mono });
      this.#late(attempt, hold);
      return unavailable(new Error(SLOW_GRANT(hold.ttl)));
    }
    if (isRefusal(answer)) return withoutNonsense(answer);
    attempt.inDoubt = true;
    return unavailable(new Error(NO_TELLING(store.name, answer)));
  }

  #hold(attempt: Attempt, granted: Granted): Holding {
    attempt.holding = this.#parts.hold(attempt, granted);
    return attempt.holding;
  }

  /** An answer came after its time: unless the attempt goes on or has its lease, it is given back (rule 2). */
  #late(attempt: Attempt, hold: Hold): void {
    const { over, holding } = attempt;
    if (!over || holding?.state === 'held') return;
    // Not before its own release: that one may have more to say, as that the work is done.
    if (holding?.state === 'releasing') holding.afterRelease = () => this.giveBack(hold);
    else this.giveBack(hold);
  }
}

const holdOf = ({ target, token, options: { ttl, permits } }: Attempt): Hold => ({
  key: target.qualified,
  token,
  ttl,
  permits,
});

function isGrant(answer: Grant | Refusal | undefined): answer is Grant {
  return answer?.granted === true && Number.isSafeInteger(answer.fence) && answer.fence > 0;
}

function isRefusal(answer: Grant | Refusal | undefined): answer is Refusal {
  return (
    answer?.granted === false &&
    (answer.reason === 'held' || answer.reason === 'done' || answer.reason === 'unavailable')
  );
}

/** A time that is none would make a waiter ask without a pause. */
function withoutNonsense(refusal: Refusal): Refusal {
  const { retryAfterMs, ...rest } = refusal;
  const isTime = retryAfterMs !== undefined && Number.isFinite(retryAfterMs) && retryAfterMs >= 0;
  return retryAfterMs === undefined || isTime ? refusal : rest;
}
