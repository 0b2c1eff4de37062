import { AsyncLocalStorage } from 'node:async_hooks';
import type { LeaseEvents } from './events.js';
import type { Holding } from './holding.js';
import type { Lease } from './lease.js';

/**
 * A fence without its lease, which another process holds: it came with a call, or was handed on.
 *
 * @publicApi
 */
export interface KeyFence {
  /** The key of the lease. */
  readonly key: string;
  readonly fence: number;
}

interface Scope {
  readonly of: LeaseScope;
  /** Absent where a call came under a lease of another process. */
  readonly lease: Lease | undefined;
  readonly incoming: KeyFence | undefined;
  outer: Scope | undefined;
}

/** The handle was given back and nobody else keeps it alive: code that still runs here is in it no more. */
const isOver = ({ lease }: Scope): boolean =>
  lease !== undefined && lease.isReleased && lease.holdings.every(({ state }) => state !== 'held');

/**
 * Around what begins now. Else work that starts its own next run from inside itself, or hands over to one that begins
 * before it has ended, would drag all of its past along.
 */
function aroundNow(): Scope | undefined {
  const innermost = alive(scopes.getStore());
  for (let scope = innermost; scope !== undefined; scope = scope.outer) {
    scope.outer = alive(scope.outer);
  }
  return innermost;
}

function alive(scope: Scope | undefined): Scope | undefined {
  let each = scope;
  while (each !== undefined && isOver(each)) each = each.outer;
  return each;
}

/** One for all engines of the process: Node visits every storage that was ever used at every promise there is. */
const scopes = new AsyncLocalStorage<Scope>();

/** Whose events tell of what happens in this context: those of the innermost engine. */
export const eventsOfContext = (): LeaseEvents | undefined => scopes.getStore()?.of.events;

/** What the running code is inside of, of any engine, the innermost first. */
export function* bearersOfContext(): Iterable<Lease | KeyFence> {
  for (let scope = scopes.getStore(); scope !== undefined; scope = scope.outer) {
    const bearer = scope.lease ?? scope.incoming;
    if (bearer !== undefined && !isOver(scope)) yield bearer;
  }
}

/**
 * The lease on this key that the running code was inside of last, which is over: with those that were inside of it, all
 * over too.
 */
export function endedOfContext(key: string): Lease | undefined {
  let scope = scopes.getStore();
  for (; scope !== undefined && isOver(scope); scope = scope.outer) {
    if (scope.lease!.keys.includes(key)) return scope.lease;
  }
  return undefined;
}

/** Which leases the running code is inside of: follows every await, timer and callback that it starts. */
export class LeaseScope {
  /** Of the engine it belongs to. */
  events: LeaseEvents | undefined;

  get current(): Lease | undefined {
    return this.#from(scopes.getStore())?.lease;
  }

  run<T>(lease: Lease, work: () => T): T {
    return scopes.run({ of: this, lease, incoming: undefined, outer: aroundNow() }, work);
  }

  /** Runs what was asked for by the holder of a lease elsewhere. */
  runUnder<T>(incoming: KeyFence, work: () => T): T {
    return scopes.run({ of: this, lease: undefined, incoming, outer: aroundNow() }, work);
  }

  /**
   * For what is told to others: a timer or an answer arrives in the context of whoever happened to start it, and a
   * listener that took a lease there would enter that one's.
   */
  outside<T>(tell: () => T): T {
    return scopes.getStore() === undefined ? tell() : scopes.exit(tell);
  }

  /** What the innermost lease of this context that covers the key holds of it. */
  find(qualified: string): Holding | undefined {
    let scope = this.#from(scopes.getStore());
    for (; scope !== undefined; scope = this.#from(scope.outer)) {
      for (const holding of scope.lease!.holdings) {
        if (holding.hold.key === qualified) return holding;
      }
    }
    return undefined;
  }

  /** The first of them, going outward, that is a lease of this engine and not over. */
  #from(scope: Scope | undefined): Scope | undefined {
    while (
      scope !== undefined &&
      (scope.of !== this || scope.lease === undefined || isOver(scope))
    ) {
      scope = scope.outer;
    }
    return scope;
  }
}
