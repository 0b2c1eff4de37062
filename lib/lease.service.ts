import { Injectable } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { LeaseOptions } from './lease.options.js';
import { LeaseEngine } from './lease/lease-engine.js';
import type { LeaseEvent, LeaseLostEvent } from './lease/events.js';
import type { Lease } from './lease/lease.js';
import type { LeaseRecord } from './stores/lease-store.js';

/**
 * Takes, runs under, and looks at leases.
 *
 * @example
 * ```ts
 * constructor(private readonly leases: LeaseService) {}
 *
 * report(id: string) {
 *   return this.leases.run(`report:${id}`, (lease) => this.build(id, lease.signal), { wait: '5s' });
 * }
 * ```
 * @publicApi
 */
@Injectable()
export class LeaseService {
  /** Everything that happens to leases of this process. */
  readonly events$: Observable<LeaseEvent>;
  /** Every loss: the end of trust before release. */
  readonly lost$: Observable<LeaseLostEvent>;

  readonly #engine: LeaseEngine;

  /** @internal */
  constructor(engine: LeaseEngine) {
    this.#engine = engine;
    this.events$ = engine.events.all.asObservable();
    this.lost$ = engine.events.lost.asObservable();
  }

  /**
   * The lease, or `null` when the key is held or the work done. Does not wait unless the options say so. Rejects
   * with `LeaseUnavailableException` when the store cannot say.
   */
  tryAcquire(key: string | string[], options?: LeaseOptions): Promise<Lease | null> {
    return this.#engine.tryAcquire(key, options);
  }

  /**
   * The lease, after at most `wait`. Rejects with `LeaseHeldException`, `LeaseDoneException` or
   * `LeaseUnavailableException`. Release it, or declare it with `await using`.
   */
  acquire(key: string | string[], options?: LeaseOptions): Promise<Lease> {
    return this.#engine.acquire(key, options);
  }

  /**
   * Runs `work` under the lease and gives it back. The work's own exception passes through untouched; its result
   * too, unless the lease was lost on the way (`LeaseLostException`). Inside, the same key is entered again
   * without asking the store.
   */
  run<T>(
    key: string | string[],
    work: (lease: Lease) => T | Promise<T>,
    options?: LeaseOptions,
  ): Promise<T> {
    return this.#engine.run(key, work, options);
  }

  /** The innermost lease that the running code is inside of. */
  current(): Lease | undefined {
    return this.#engine.scope.current;
  }

  /** The leases of this process that are held now. */
  held(): readonly Lease[] {
    return [...this.#engine.leases].filter((lease) => lease.isHeld);
  }

  /** Who holds a key, anywhere; `null` when it is free. For people: by the time you read it, it may be wrong. */
  inspect(key: string): Promise<LeaseRecord | null> {
    return this.#engine.inspect(key);
  }
}
