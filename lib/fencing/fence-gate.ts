import { Subject, type Observable } from 'rxjs';
import { StaleFenceException } from '../exceptions/stale-fence.exception.js';
import { FOREIGN_FENCE } from '../lease.messages.js';
import type { LeaseEvents, StaleFenceEvent } from '../lease/events.js';
import { assertKey } from '../lease/key.js';
import { fencesOfContext, findFence, type FenceSource, type FoundFence } from './fence-source.js';

/**
 * What a gate says of a fence that it refused.
 *
 * @publicApi
 */
export type StaleFence = Pick<StaleFenceEvent, 'key' | 'resource' | 'fence' | 'highest'>;

/**
 * What a gate remembers of a resource.
 *
 * @publicApi
 */
export interface Mark {
  /** The highest fence that was admitted; nothing below it passes. */
  readonly highest: number;
  /** Nothing is remembered, and `highest` is what a fence must reach there. */
  readonly isFloor?: boolean;
}

/**
 * A gate with a fence in it.
 *
 * @publicApi
 */
export interface GuardedGate {
  /** As {@link FenceGate.admit}. */
  admit(resource: string): Promise<void>;
}

/**
 * Keeps stale owners out: remembers, for every resource, the highest fence it was written under, and lets no lower one
 * pass. A gate is as good as the place where it remembers: one that is asked in the transaction, or in the script, of
 * the write itself lets nothing stale through; {@link admit} alone leaves the moment between the answer and the write.
 *
 * A resource is written under the leases of one key: fences of different keys do not compare.
 *
 * @publicApi
 */
export abstract class FenceGate {
  /** Every fence that this gate refused. `leases.events$` has them too, as `stale-fence`. */
  readonly stale$: Observable<StaleFence>;

  readonly #stale = new Subject<StaleFence>();
  readonly #listeners = new Set<LeaseEvents>();
  readonly #warned = new Set<string>();

  protected constructor() {
    this.stale$ = this.#stale.asObservable();
  }

  /**
   * Lets the fence pass if it is at least the highest that the resource has seen, and remembers it; else throws
   * {@link StaleFenceException}. To come again with the same fence is to pass again.
   *
   * @param resource - what is written to, by any name of yours
   * @param fence - by default that of the lease this code runs under
   */
  async admit(resource: string, fence?: FenceSource): Promise<void> {
    const found = this.find(resource, fence);
    const mark = await this.raise(resource, found.fence);
    if (mark.highest > found.fence) throw this.refuse(resource, found, mark);
  }

  /**
   * The gate with the fence in it, for whoever is to write and not to choose one. A method declared with `fenced` is
   * given this.
   *
   * @param onUse - told of everything that is asked of it
   */
  under(fence: FenceSource, onUse: () => void = () => {}): GuardedGate {
    return {
      admit: (resource) => {
        onUse();
        return this.admit(resource, fence);
      },
    };
  }

  /** @internal Stale fences whose lease tells of no application are told to this one. */
  tellTo(events: LeaseEvents): () => void {
    this.#listeners.add(events);
    return () => this.#listeners.delete(events);
  }

  /** Raises the mark of the resource to the fence unless it is higher; what it is then. In one atomic step. */
  protected abstract raise(resource: string, fence: number): Promise<Mark>;

  protected find(resource: string, source: FenceSource | undefined): FoundFence {
    assertKey(resource, 'resource');
    const what = `Writing to "${resource}"`;
    const found = findFence(source, what, resource);
    if (typeof source === 'number') this.#warnOfForeign(what, found);
    return found;
  }

  protected refuse(resource: string, found: FoundFence, mark: Mark): StaleFenceException {
    const { fence, key = resource, events } = found;
    const { highest, isFloor = false } = mark;
    const listeners = events === undefined ? this.#listeners : [events];
    for (const each of listeners) {
      each.emit({ type: 'stale-fence', key, resource, fence, highest });
    }
    this.#stale.next({ key, resource, fence, highest });
    return new StaleFenceException(resource, fence, highest, isFloor);
  }

  /** Passed by hand under a lease that has another: most likely a mistake, and one that no test of one process finds. */
  #warnOfForeign(what: string, { fence, events }: FoundFence): void {
    if (process.env['NODE_ENV'] === 'production' || events === undefined) return;
    const own = fencesOfContext();
    if (own.length === 0 || own.some((one) => one.fence === fence)) return;
    const about = own.map(({ key }) => key).join('\0');
    if (this.#warned.has(about) || this.#warned.size > 1_000) return;
    this.#warned.add(about);
    events.warn(FOREIGN_FENCE(what, fence, own));
  }
}
