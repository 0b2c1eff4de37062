import { AsyncLocalStorage } from 'node:async_hooks';
import type { Holding } from './holding.js';
import type { Lease } from './lease.js';

interface Scope {
  readonly lease: Lease;
  readonly outer: Scope | undefined;
}

/** Which leases the running code is inside of: follows every await, timer and callback that it starts. */
export class LeaseScope {
  readonly #scopes = new AsyncLocalStorage<Scope>();

  get current(): Lease | undefined {
    return this.#scopes.getStore()?.lease;
  }

  run<T>(lease: Lease, work: () => T): T {
    return this.#scopes.run({ lease, outer: this.#scopes.getStore() }, work);
  }

  /** What the innermost lease of this context that covers the key holds of it. */
  find(qualified: string): Holding | undefined {
    for (let scope = this.#scopes.getStore(); scope !== undefined; scope = scope.outer) {
      const found = scope.lease.holdings.find(({ hold }) => hold.key === qualified);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
