import {
  BAD_FENCE,
  BAD_FENCE_SOURCE,
  FENCE_OF_PERMIT,
  NO_FENCE,
  WHICH_FENCE,
} from '../lease.messages.js';
import type { LeaseEvents } from '../lease/events.js';
import {
  bearersOfContext,
  endedOfContext,
  eventsOfContext,
  type KeyFence,
} from '../lease/lease-scope.js';
import { Lease } from '../lease/lease.js';

/**
 * What fences a write: a lease, its fence alone, or the fence of a key.
 *
 * @publicApi
 */
export type FenceSource = number | Lease | KeyFence;

/** A fence that was found, and whose it is. */
export interface FoundFence {
  readonly fence: number;
  /** The key of its lease, where that is known. */
  readonly key: string | undefined;
  /** Where it is told when it proves stale. */
  readonly events: LeaseEvents | undefined;
}

/**
 * The fence for what is to be done: the one that was passed, or that of the lease the code runs under.
 *
 * @param what - for people
 * @param resource - of several leases, the one on a key of this name is meant
 */
export function findFence(
  source: FenceSource | undefined,
  what: string,
  resource?: string,
): FoundFence {
  if (source === undefined) return fenceOfContext(what, resource);
  if (typeof source === 'number') {
    return { fence: checked(source), key: undefined, events: eventsOfContext() };
  }
  return fenceOf(source, what, resource);
}

function fenceOf(bearer: Lease | KeyFence, what: string, resource?: string): FoundFence {
  if (bearer instanceof Lease) return fenceOfLease(bearer, what, resource);
  if (typeof bearer !== 'object' || bearer === null || typeof bearer.key !== 'string') {
    throw new TypeError(BAD_FENCE_SOURCE(bearer));
  }
  return { fence: checked(bearer.fence), key: bearer.key, events: eventsOfContext() };
}

function fenceOfLease(lease: Lease, what: string, resource?: string): FoundFence {
  // The clock of this process first: it needs nobody's answer (rule 4).
  lease.assertHeld();
  const { holdings, events } = lease;
  const holding =
    holdings.length === 1 ? holdings[0] : holdings.find(({ key }) => key === resource);
  if (holding === undefined) throw new TypeError(WHICH_FENCE(what, lease.keys));
  const { key, fence, hold } = holding;
  if (hold.permits > 1) throw new TypeError(FENCE_OF_PERMIT(what, key, hold.permits));
  return { fence, key, events };
}

/**
 * Fences of different keys do not compare: where the code is inside of several leases, it is the one on the resource's
 * own name, or nobody's guess.
 */
function fenceOfContext(what: string, resource: string | undefined): FoundFence {
  const bearers = [...bearersOfContext()];
  const [innermost] = bearers;
  if (innermost === undefined) throw new Error(NO_FENCE(what));
  const named = bearers.find((bearer) => keysOf(bearer).includes(resource!));
  // What was written under a lease that has ended is not written under the one around it, whose fence may be higher.
  if (named === undefined) endedOfContext(resource!)?.assertHeld();
  const keys = new Set(bearers.flatMap(keysOf));
  if (named === undefined && keys.size > 1) throw new TypeError(WHICH_FENCE(what, [...keys]));
  return fenceOf(named ?? innermost, what, resource);
}

const keysOf = (bearer: Lease | KeyFence): readonly string[] =>
  bearer instanceof Lease ? bearer.keys : [bearer.key];

/** The fences that the running code could mean, to tell it of one that is none of them. */
export function fencesOfContext(): readonly KeyFence[] {
  return [...bearersOfContext()].flatMap((bearer) =>
    bearer instanceof Lease ? bearer.holdings.map(({ key, fence }) => ({ key, fence })) : [bearer],
  );
}

export function checked(fence: unknown): number {
  if (typeof fence !== 'number') throw new TypeError(BAD_FENCE(fence));
  if (!Number.isSafeInteger(fence) || fence < 1) throw new RangeError(BAD_FENCE(fence));
  return fence;
}
