import type { LeaseEvent } from '../../../lib/lease/events.js';
import { LeaseEngine, type LeaseEngineOptions } from '../../../lib/lease/lease-engine.js';
import { MemoryLeaseStore } from '../../../lib/stores/memory/memory-lease-store.js';
import type { LeaseStore } from '../../../lib/stores/lease-store.js';
import { ScriptedStore } from '../../support/scripted-store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

/** With it: trusted for 5000 ms, a margin of 1000 ms, renewed every 2000 ms, an answer waited for 2000 ms. */
export const TTL = 6_000;
export const TRUSTED = 5_000;
export const THIRD = 2_000;
export const PATIENCE = 2_000;

export type EventOf<Type extends LeaseEvent['type']> = Extract<LeaseEvent, { type: Type }>;

/** An engine on a clock and a store that the test owns, and others beside it on the same store. */
export class World {
  readonly clock = new VirtualClock();
  readonly memory = new MemoryLeaseStore(this.clock);
  readonly store: ScriptedStore;
  readonly engine: LeaseEngine;
  readonly events: LeaseEvent[] = [];

  constructor(
    options: Partial<LeaseEngineOptions> = {},
    limits: Partial<LeaseStore['limits']> = {},
  ) {
    this.store = new ScriptedStore(this.memory, limits);
    this.engine = this.#engine({ store: this.store, ...options });
    this.engine.events.all.subscribe((event) => this.events.push(event));
  }

  /** Another process, with a connection of its own. */
  rival(options: Partial<LeaseEngineOptions> = {}): LeaseEngine {
    return this.#engine({ store: this.memory, instance: 'rival', ...options });
  }

  of<Type extends LeaseEvent['type']>(type: Type): EventOf<Type>[] {
    return this.events.filter((event): event is EventOf<Type> => event.type === type);
  }

  /** Whether the store has it. */
  async isTaken(key: string): Promise<boolean> {
    return (await this.memory.inspect(`test/${key}`)) !== null;
  }

  /** Somebody holds the key for an hour, who runs on no clock of ours. */
  async occupy(key: string): Promise<void> {
    const claim = { key: `test/${key}`, token: 'somebody', instance: 'somebody', permits: 1 };
    await this.memory.acquire({ ...claim, ttl: 3_600_000, patience: 1 });
  }

  /** Somebody deletes the key behind everybody's back. */
  async steal(key: string): Promise<void> {
    const { token } = this.store.claims.findLast((claim) => claim.key === `test/${key}`)!;
    await this.memory.release({ key: `test/${key}`, token, ttl: TTL, permits: 1 }, {});
  }

  #engine(options: Partial<LeaseEngineOptions> & { store: LeaseStore }): LeaseEngine {
    return new LeaseEngine({
      namespace: 'test',
      instance: 'me',
      ttl: TTL,
      wait: 0,
      clock: this.clock,
      // The latest renewal and the longest pause that jitter allows.
      random: () => 1,
      ...options,
    });
  }
}

/** A promise that others settle, and whether it has been. */
export function deferred<T = void>(): {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** What a promise has come to by now; `pending` if to nothing. Marks a rejection as handled. */
export function outcome<T>(promise: Promise<T>): {
  state: 'pending' | 'fulfilled' | 'rejected';
  value?: T;
  error?: unknown;
} {
  const seen: ReturnType<typeof outcome<T>> = { state: 'pending' };
  promise.then(
    (value) => Object.assign(seen, { state: 'fulfilled', value }),
    (error: unknown) => Object.assign(seen, { state: 'rejected', error }),
  );
  return seen;
}
