import { NO_TELLING, SLOW_GRANT } from '../lease.messages.js';
import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseStore,
  OnTurn,
  Refusal,
} from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { Holding } from './holding.js';
import type { Target } from './key.js';
import { askPatiently, patienceFor, withPatience, type Asker } from './patience.js';
import type { ResolvedOptions } from './resolve-options.js';
import { Trust } from './trust.js';
import type { UnderWay } from './under-way.js';

/** When a request left, on both clocks: read before it did (rule 3). */
export interface Sent {
  readonly mono: number;
  readonly wall: number;
}

/** One try to get one key, over as many requests as it takes: all of them carry the same token (rule 2). */
export class Attempt {
  readonly hold: Hold;
  /** A request went out whose answer never came: the store may have granted it. */
  inDoubt = false;
  /** Nobody waits any more: what is granted now is given back. */
  over = false;
  /** What came of it. */
  holding: Holding | undefined;
  /**
   * Stands in line at the store, which may grant it the key at any time since this request. The first: a call may be
   * late, so that no later one can be known to have come before the grant it tells of.
   */
  inLine: Sent | undefined;

  constructor(
    readonly target: Target,
    token: string,
    readonly options: ResolvedOptions,
    /** Monotonic time. */
    readonly startedAt: number,
  ) {
    const { ttl, permits } = options;
    this.hold = { key: target.qualified, token, ttl, permits };
  }
}

/** What the store granted, and the trust that it earned. */
export interface Granted {
  readonly hold: Hold;
  readonly fence: number;
  readonly trust: Trust;
  /** Monotonic time before the request left. */
  readonly sentAt: number;
  /** Monotonic time from which it is held: that, or when the store called it. */
  readonly heldFrom: number;
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

/** Who asked: told what came of a claim. */
export interface Answered {
  answered(answer: Holding | Refusal): void;
}

/** Told what came of a release that was a hand-over: whether the key was freed, or that there is no telling. */
export interface HandedOver {
  freed(isFreed: boolean): void;
  unknown(): void;
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

  attempt(target: Target, options: ResolvedOptions, startedAt: number): Attempt {
    return new Attempt(target, this.#parts.token(), options, startedAt);
  }

  /**
   * One request to the store. Always answers: not to know is an answer too (rule 9).
   *
   * @param onTurn - of one that waits: it may stand in line from now on
   */
  claim(attempt: Attempt, patience: number, asker: Answered, onTurn?: OnTurn): void {
    const { store, underWay, agenda } = this.#parts;
    const sent = this.#now();
    const claim = this.#claimOf(attempt, patience, sent);
    const enqueues = onTurn !== undefined && store.enqueue !== undefined;
    if (enqueues) attempt.inLine ??= sent;
    underWay.begin();
    const ask = (): Promise<Grant | Refusal> =>
      enqueues ? store.enqueue!(claim, onTurn) : store.acquire(claim);
    const inFlight = new ClaimInFlight(this, attempt, sent, asker);
    askPatiently(agenda, patience, ask, inFlight, sent.mono);
  }

  /**
   * Releases a key that is held here and claims it for the next of us in one request. `told` is told of the release,
   * the next of the claim: both of them always, in this order.
   */
  handOver(
    hold: Hold,
    next: Attempt,
    patience: number,
    asker: Answered,
    onTurn: OnTurn,
    told: HandedOver,
  ): void {
    const { store, agenda, underWay } = this.#parts;
    const sent = this.#now();
    const claim = this.#claimOf(next, patience, sent);
    next.inLine ??= sent;
    underWay.begin();
    const inFlight = new ClaimInFlight(this, next, sent, asker);
    askPatiently<HandOver>(
      agenda,
      patience,
      () => store.handOver!(hold, claim, onTurn),
      {
        answered: (over) => {
          const { freed, answer, error } = readOut(over);
          if (freed === undefined) told.unknown();
          else told.freed(freed);
          if (error === undefined) inFlight.answered(answer!);
          else inFlight.failed(error);
        },
        failed: (error) => {
          told.unknown();
          inFlight.failed(error);
        },
        late: () => inFlight.late(),
      },
      sent.mono,
    );
  }

  /**
   * The store called one that stands in line and granted it the key since. It holds it by the request that put it
   * there; too little left of that is as good as a call to ask again.
   */
  granted(attempt: Attempt, { fence }: Grant): void {
    const { agenda } = this.#parts;
    const { hold, inLine } = attempt;
    // It had it, and has given it back or lost it: whatever this tells of is nobody's.
    if (attempt.holding !== undefined) return this.late(attempt);
    if (attempt.over) return this.giveBack(hold);
    if (inLine === undefined) return;
    const trust = new Trust(agenda.clock, inLine.mono, inLine.wall, hold.ttl);
    if (trust.remaining < hold.ttl / 3) return;
    this.#hold(attempt, fence, trust, inLine, agenda.clock.now());
  }

  /** Nobody waits for the attempt any more. What it was or may be granted without being taken is given back. */
  finish(attempt: Attempt, isTaken: boolean): void {
    attempt.over = true;
    const { holding, hold } = attempt;
    if (holding === undefined) {
      if (attempt.inDoubt || attempt.inLine !== undefined) this.giveBack(hold);
    } else if (!isTaken && holding.beginRelease()) {
      this.#parts.agenda.cancel(holding);
      holding.endRelease();
      this.giveBack(hold);
    } else if (!isTaken && attempt.inDoubt) {
      this.giveBack(hold);
    }
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

  #now(): Sent {
    const { clock } = this.#parts.agenda;
    return { mono: clock.now(), wall: clock.wall() };
  }

  #claimOf({ hold, options, startedAt }: Attempt, patience: number, { mono }: Sent): Claim {
    const { key, token, ttl, permits } = hold;
    const { once } = options;
    const { instance } = this.#parts;
    const waited = mono - startedAt;
    const claim = { key, token, ttl, permits, instance, patience, waited };
    return once === undefined ? claim : { ...claim, once };
  }

  /** @internal An answer that throws when it is read is none (rule 12). */
  read(attempt: Attempt, sent: Sent, answer: Grant | Refusal): Holding | Refusal {
    this.#parts.underWay.end();
    try {
      return this.#answered(attempt, sent, answer);
    } catch (error) {
      return this.#failed(attempt, error);
    }
  }

  /** @internal */
  failed(attempt: Attempt, error: unknown): Holding | Refusal {
    this.#parts.underWay.end();
    return this.#failed(attempt, error);
  }

  #answered(attempt: Attempt, sent: Sent, answer: Grant | Refusal | undefined): Holding | Refusal {
    const { agenda, store } = this.#parts;
    const { hold, holding } = attempt;
    // Called while it asked: it has what it asked for, and the answer can only add to its trust.
    if (holding !== undefined) {
      if (isGrant(answer) && !holding.renewed(sent.mono, sent.wall, hold.ttl)) {
        // Lost meanwhile, and perhaps granted anew.
        attempt.inDoubt = true;
        this.late(attempt);
      }
      return holding;
    }
    if (isGrant(answer)) {
      const trust = new Trust(agenda.clock, sent.mono, sent.wall, hold.ttl);
      attempt.inDoubt = attempt.over || trust.remaining <= 0;
      if (!attempt.inDoubt) return this.#hold(attempt, answer.fence, trust, sent);
      this.late(attempt);
      return unavailable(new Error(SLOW_GRANT(hold.ttl)));
    }
    if (isRefusal(answer)) return withoutNonsense(answer);
    attempt.inDoubt = true;
    return unavailable(new Error(NO_TELLING(store.name, answer)));
  }

  #failed(attempt: Attempt, error: unknown): Holding | Refusal {
    if (attempt.holding !== undefined) return attempt.holding;
    attempt.inDoubt = true;
    this.late(attempt);
    return unavailable(error);
  }

  #hold(
    attempt: Attempt,
    fence: number,
    trust: Trust,
    { mono: sentAt }: Sent,
    heldFrom = sentAt,
  ): Holding {
    const { hold } = attempt;
    attempt.inLine = undefined;
    attempt.holding = this.#parts.hold(attempt, { hold, fence, trust, sentAt, heldFrom });
    return attempt.holding;
  }

  /** @internal An answer came after its time: unless the attempt goes on or has its lease, it is given back (rule 2). */
  late({ over, holding, hold }: Attempt): void {
    if (!over || holding?.state === 'held') return;
    // Not before its own release: that one may have more to say, as that the work is done.
    if (holding?.state === 'releasing') holding.afterRelease = () => this.giveBack(hold);
    else this.giveBack(hold);
  }
}

/** A claim that the store has been asked for. */
class ClaimInFlight implements Asker<Grant | Refusal> {
  constructor(
    private readonly claimant: Claimant,
    private readonly attempt: Attempt,
    private readonly sent: Sent,
    private readonly asker: Answered,
  ) {}

  answered(answer: Grant | Refusal): void {
    this.asker.answered(this.claimant.read(this.attempt, this.sent, answer));
  }

  failed(error: unknown): void {
    this.asker.answered(this.claimant.failed(this.attempt, error));
  }

  late(): void {
    this.claimant.late(this.attempt);
  }
}

/** An answer that throws when it is read is none (rule 12). */
function readOut(over: HandOver): Partial<HandOver> & { readonly error?: unknown } {
  try {
    const { freed, answer } = over;
    return typeof freed === 'boolean' ? { freed, answer } : { answer };
  } catch (error) {
    return { error };
  }
}

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
