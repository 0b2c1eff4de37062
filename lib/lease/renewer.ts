import type { LeaseStore, RenewOutcome } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { LeaseEvents } from './events.js';
import type { Holding } from './holding.js';
import { withPatience } from './patience.js';
import { MARGIN } from './trust.js';
import { NO_TELLING } from '../lease.messages.js';

/** More holds than this go to the store in several requests, so that none of them blocks it for long. */
const BATCH = 256;
const RETRY_AT_MOST = 1_000;

/** Renews what is due, many holdings in one request, and retries for as long as there is trust (rule 6). */
export class Renewer {
  #queue: Holding[] = [];
  #stopped = false;

  constructor(
    private readonly store: LeaseStore,
    private readonly agenda: Agenda,
    private readonly random: () => number,
    private readonly events: LeaseEvents,
  ) {}

  /** Sets the time of the next renewal after one that was sent at `mono`. */
  plan(holding: Holding, mono: number): void {
    // Jitter only ever makes it earlier: a third of the ttl is the promise.
    const third = holding.ttl / 3;
    holding.renewAt = wanted(holding) ? mono + third * (0.85 + 0.15 * this.random()) : Infinity;
    this.#schedule(holding);
  }

  /** The holding's appointment came. */
  due(holding: Holding): void {
    if (!holding.isHeld) return;
    if (holding.renewAt <= this.agenda.clock.now()) this.#enqueue(holding);
    this.#schedule(holding);
  }

  /** What is still held is left to its ttl: a renewal that comes back from now on plans no other. */
  stop(): void {
    this.#stopped = true;
  }

  /** Renews at once and tells how it went; an automatic renewal that is under way is waited for first. */
  async now(holding: Holding): Promise<RenewOutcome> {
    while (holding.renewing !== undefined) await holding.renewing;
    if (!holding.isHeld) return 'gone';
    const [outcome = 'unknown'] = await this.#send([holding]);
    return holding.isHeld ? outcome : 'gone';
  }

  #schedule(holding: Holding): void {
    if (this.#stopped) return;
    // A suspended machine is found by looking: at least once in a margin (rule 4).
    const look = this.agenda.clock.now() + holding.ttl * MARGIN;
    this.agenda.schedule(holding, Math.min(holding.renewAt, holding.endsAt, look));
  }

  #enqueue(holding: Holding): void {
    // The renewal that is on its way sets the next time when it comes back, whatever comes of it.
    holding.renewAt = Infinity;
    if (this.#queue.push(holding) === 1) queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    // One at a time for each: a release waits for the one it knows of (rule 7).
    const due = this.#queue.filter((holding) => holding.isHeld && !holding.renewing);
    this.#queue = [];
    for (let from = 0; from < due.length; from += BATCH) {
      void this.#send(due.slice(from, from + BATCH));
    }
  }

  #send(batch: readonly Holding[]): Promise<readonly RenewOutcome[]> {
    const { clock } = this.agenda;
    const mono = clock.now();
    const wall = clock.wall();
    const holds = batch.map((holding) => holding.hold);
    const bound = batch.reduce(
      (least, { ttl, remaining }) => Math.min(least, ttl * MARGIN, remaining),
      Infinity,
    );
    const apply = (answer: unknown, late: boolean): readonly RenewOutcome[] => {
      const outcomes = readOut(answer);
      return batch.map((holding, i) => {
        const outcome = outcomes[i];
        if (outcome === 'renewed') {
          this.#renewed(holding, mono, wall, holds[i]!.ttl);
          return outcome;
        }
        if (outcome === 'gone') {
          holding.lose('taken');
          return outcome;
        }
        if (!late) this.#failed(holding, new Error(NO_TELLING(this.store.name, outcome)));
        return 'unknown';
      });
    };
    const sent = withPatience<unknown>(
      this.agenda,
      bound,
      () => this.store.renew(holds),
      // Late, but perhaps not too late: the trust it earns counts from when it was sent.
      (answer) => void apply(answer, true),
    ).then(
      (answer) => apply(answer, false),
      (error: unknown) =>
        batch.map((holding): RenewOutcome => {
          this.#failed(holding, error);
          return 'unknown';
        }),
    );
    for (const holding of batch) holding.renewing = sent;
    void sent.finally(() => {
      for (const holding of batch) if (holding.renewing === sent) holding.renewing = undefined;
    });
    return sent;
  }

  #renewed(holding: Holding, mono: number, wall: number, ttl: number): void {
    if (!holding.renewed(mono, wall, ttl)) return;
    this.plan(holding, mono);
    const { key, fence, remaining } = holding;
    this.events.emit({ type: 'renewed', key, fence, remainingMs: remaining });
  }

  #failed(holding: Holding, error: unknown): void {
    if (!holding.isHeld) return;
    holding.failures++;
    const pause = Math.min(holding.ttl / 30, RETRY_AT_MOST) * (0.5 + this.random());
    holding.renewAt = wanted(holding) ? this.agenda.clock.now() + pause : Infinity;
    this.#schedule(holding);
    const { key, fence, failures, remaining } = holding;
    this.events.emitTrouble({
      type: 'renewal-failed',
      key,
      fence,
      failures,
      remainingMs: remaining,
      error,
    });
  }
}

/** Of a lease on several keys that has lost one, the others are left to their ttl. */
function wanted({ options, owner, uses }: Holding): boolean {
  const isBroken =
    uses === 1 &&
    owner?.isReleased === false &&
    owner.holdings.some(({ state }) => state === 'lost');
  return options.renew && !isBroken;
}

/** An answer that throws when it is read is none (rule 12): a release waits for this renewal and must not fail by it. */
function readOut(answer: unknown): readonly unknown[] {
  try {
    return Array.isArray(answer) ? [...answer] : [];
  } catch {
    return [];
  }
}
