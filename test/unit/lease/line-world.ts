import type { LeaseEvent } from '../../../lib/lease/events.js';
import { LeaseEngine } from '../../../lib/lease/lease-engine.js';
import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseRecord,
  LeaseStore,
  OnTurn,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../../../lib/stores/lease-store.js';
import { ReferenceStore, type Ear } from '../../simulation/reference-store.js';
import { pass, type Behaviour } from '../../support/scripted-store.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { TTL } from './world.js';

type Method = 'acquire' | 'enqueue' | 'handOver' | 'release' | 'renew';

/** One connection to a store where all processes wait in one line, in the hand of a test, call by call. */
export class LineStore implements LeaseStore {
  readonly name = 'line';
  readonly limits = { minTtl: 1, maxTtl: 86_400_000, permits: true, push: true, shared: true };
  /** What was asked for, in order. */
  asked: { readonly method: Method; readonly token: string }[] = [];
  /** Calls to those in line that are on their way; `undefined` when they arrive at once. */
  calls: (() => void)[] | undefined;

  readonly #scripts = new Map<Method, Behaviour[]>();
  readonly #always = new Map<Method, Behaviour>();

  constructor(
    private readonly data: ReferenceStore,
    private readonly now: () => number,
  ) {}

  /** The next calls of a method, one behaviour each; then it is as it was. */
  next(method: Method, ...behaviours: Behaviour[]): void {
    this.#scripts.set(method, [...(this.#scripts.get(method) ?? []), ...behaviours]);
  }

  /** Every call of a method that has no other script, until told otherwise. */
  always(method: Method, behaviour: Behaviour): void {
    this.#always.set(method, behaviour);
  }

  get methods(): readonly Method[] {
    return this.asked.map(({ method }) => method);
  }

  /** The calls that were on their way arrive. */
  deliver(): void {
    const calls = this.calls ?? [];
    this.calls = undefined;
    for (const call of calls) call();
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    const until = this.now() + claim.patience;
    return this.#ask('acquire', claim.token, () => this.data.acquire(claim, until));
  }

  enqueue(claim: Claim, onTurn: OnTurn): Promise<Grant | Refusal> {
    const until = this.now() + claim.patience;
    const ear = this.#ear(onTurn);
    return this.#ask('enqueue', claim.token, () => this.data.acquire(claim, until, ear));
  }

  handOver(hold: Hold, next: Claim, onTurn: OnTurn): Promise<HandOver> {
    const until = this.now() + next.patience;
    const ear = this.#ear(onTurn);
    return this.#ask('handOver', next.token, () => this.data.handOver(hold, next, until, ear));
  }

  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    return this.#ask('renew', holds[0]!.token, () => this.data.renew(holds));
  }

  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    return this.#ask('release', hold.token, () => this.data.release(hold, how));
  }

  async inspect(): Promise<LeaseRecord | null> {
    return null;
  }

  async *list(): AsyncIterable<LeaseRecord> {}

  async close(): Promise<void> {}

  #ear(onTurn: OnTurn): Ear {
    const call = (_: Claim, grant?: Grant): void => {
      if (this.calls === undefined) onTurn(grant);
      else this.calls.push(() => onTurn(grant));
    };
    return { hears: true, call };
  }

  #ask<T>(method: Method, token: string, execute: () => T): Promise<T> {
    this.asked.push({ method, token });
    const behaviour = this.#scripts.get(method)?.shift() ?? this.#always.get(method) ?? pass;
    return behaviour(async () => execute()) as Promise<T>;
  }
}

/** Two processes at one store with a line, on one clock. */
export class LineWorld {
  readonly clock = new VirtualClock();
  readonly data = new ReferenceStore(() => this.clock.now());
  readonly store = this.#connection();
  readonly engine = this.#engine(this.store, 'me');
  readonly rival = this.#engine(this.#connection(), 'rival');
  readonly events: LeaseEvent[] = [];

  constructor() {
    this.engine.events.all.subscribe((event) => this.events.push(event));
  }

  get outcomes(): readonly string[] {
    return this.events.flatMap((event) => (event.type === 'released' ? [event.outcome] : []));
  }

  #connection(): LineStore {
    return new LineStore(this.data, () => this.clock.now());
  }

  #engine(store: LineStore, instance: string): LeaseEngine {
    return new LeaseEngine({
      store,
      namespace: 'test',
      instance,
      ttl: TTL,
      wait: 0,
      clock: this.clock,
      random: () => 1,
    });
  }
}
