import type { Hold, LeaseStore, RenewOutcome } from '../stores/lease-store.js';
import type { Agenda, Appointment } from './agenda.js';
import { withPatience } from './patience.js';
import { MARGIN } from './trust.js';
import { NO_TELLING } from '../lease.messages.js';

/** More holds than this go to the store in several requests, so that none of them blocks it for long. */
const BATCH = 256;
const RETRY_AT_MOST = 1_000;

/** After this much of a ttl without a success the deputy is late: it has had a third, and a margin to try again. */
const OVERDUE = 1 / 2;

/** What is renewed: a holding, or what stands for it in another thread. */
export interface Renewable extends Appointment {
  readonly hold: Hold;
  readonly ttl: number;
  readonly leeway: number;
  /** Looks at the clock (rule 4). */
  readonly isHeld: boolean;
  readonly isWanted: boolean;
  readonly remaining: number;
  /** Monotonic times: of the request that earned the present trust, and of its end. */
  readonly sentAt: number;
  readonly endsAt: number;
  renewAt: number;
  failures: number;
  renewing: Promise<readonly RenewOutcome[]> | undefined;
  /** The `sentAt` in whose time it was told that the event loop lags: once is enough. */
  lagToldOf: number;
  renewed(mono: number, wall: number, ttl: number): boolean;
  lose(reason: 'taken'): void;
}

/** Who is told how renewals go. */
export interface RenewalWitness<Item> {
  renewed(item: Item): void;
  failed(item: Item, error: unknown): void;
  lagging(item: Item, lateMs: number): void;
}

/** Somebody else who renews. The renewer then only steps in. */
export interface Deputy<Item> {
  /** How late the event loop may be before the deputy stops. */
  readonly hungAfter: number;
  has(item: Item): boolean;
  /** Renews it from now on; of one that it has, hears what became of it here. */
  tend(item: Item): void;
  leave(item: Item): void;
}

/** Renews what is due, many holdings in one request, and retries for as long as there is trust (rule 6). */
export class Renewer<Item extends Renewable> {
  #queue: Item[] = [];
  #stopped = false;
  deputy: Deputy<Item> | undefined;

  constructor(
    private readonly store: Pick<LeaseStore, 'name' | 'renew'>,
    private readonly agenda: Agenda,
    private readonly random: () => number,
    private readonly witness: RenewalWitness<Item>,
  ) {}

  /** Sets the time of the next renewal after one that was sent at `mono`. */
  plan(holding: Item, mono: number): void {
    // Jitter only ever makes it earlier: a third of the ttl is the promise.
    const third = holding.ttl / 3;
    holding.renewAt = holding.isWanted ? mono + third * (0.85 + 0.15 * this.random()) : Infinity;
    if (this.deputy !== undefined && holding.isWanted && !this.#stopped) {
      this.deputy.tend(holding);
      holding.renewAt = mono + holding.ttl * OVERDUE;
    }
    this.#schedule(holding);
  }

  /** The holding's appointment came. */
  due(holding: Item): void {
    const now = this.agenda.clock.now();
    const lateMs = now - holding.due;
    if (!holding.isHeld) return;
    const bound = this.deputy?.hungAfter ?? holding.ttl * MARGIN;
    if (lateMs > bound / 2) this.#lagging(holding, lateMs);
    if (this.deputy !== undefined && !this.#stopped) this.#oversee(holding, this.deputy);
    if (holding.renewAt - holding.leeway <= now) this.#enqueue(holding);
    this.#schedule(holding);
  }

  /** What is still held is left to its ttl: a renewal that comes back from now on plans no other. */
  stop(): void {
    this.#stopped = true;
  }

  /** Renews at once and tells how it went; an automatic renewal that is under way is waited for first. */
  async now(holding: Item): Promise<RenewOutcome> {
    while (holding.renewing !== undefined) await holding.renewing;
    if (!holding.isHeld) return 'gone';
    const [outcome = 'unknown'] = await this.#send([holding]);
    return holding.isHeld ? outcome : 'gone';
  }

  #oversee(holding: Item, deputy: Deputy<Item>): void {
    if (!holding.isWanted) {
      deputy.leave(holding);
      holding.renewAt = Infinity;
      return;
    }
    // Granted before there was a deputy.
    if (!deputy.has(holding)) deputy.tend(holding);
    holding.renewAt = Math.max(holding.renewAt, holding.sentAt + holding.ttl * OVERDUE);
  }

  #schedule(holding: Item): void {
    if (this.#stopped) return;
    // A suspended machine is found by looking: at least once in a margin (rule 4).
    const look = this.agenda.clock.now() + holding.ttl * MARGIN;
    this.agenda.schedule(holding, Math.min(holding.renewAt, holding.endsAt, look));
  }

  #enqueue(holding: Item): void {
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

  #send(batch: readonly Item[]): Promise<readonly RenewOutcome[]> {
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

  #renewed(holding: Item, mono: number, wall: number, ttl: number): void {
    if (!holding.renewed(mono, wall, ttl)) return;
    this.plan(holding, mono);
    this.witness.renewed(holding);
  }

  #failed(holding: Item, error: unknown): void {
    if (!holding.isHeld) return;
    holding.failures++;
    const pause = Math.min(holding.ttl / 30, RETRY_AT_MOST) * (0.5 + this.random());
    holding.renewAt = holding.isWanted ? this.agenda.clock.now() + pause : Infinity;
    this.#schedule(holding);
    this.witness.failed(holding, error);
  }

  #lagging(holding: Item, lateMs: number): void {
    const { sentAt } = holding;
    if (holding.lagToldOf === sentAt) return;
    holding.lagToldOf = sentAt;
    this.witness.lagging(holding, lateMs);
  }
}

/** An answer that throws when it is read is none (rule 12): a release waits for this renewal and must not fail by it. */
function readOut(answer: unknown): readonly unknown[] {
  try {
    return Array.isArray(answer) ? [...answer] : [];
  } catch {
    return [];
  }
}
