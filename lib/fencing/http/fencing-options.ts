import { BAD_OPTION, BAD_SECRETS } from '../../lease.messages.js';
import { parseDuration, type Duration } from '../../lease/duration.js';
import type { LeaseEvents } from '../../lease/events.js';
import { assertKnown } from '../../lease/resolve-options.js';
import { FenceGate } from '../fence-gate.js';

/**
 * Fences that leave this service, and those that come to it.
 *
 * @publicApi
 */
export interface FencingOptions {
  /**
   * Signs the fences of calls to other services, and proves those of calls from them: the first signs, any of them
   * proves, so that a new one can be put in front while the old one is still in use. At least 16 bytes each.
   */
  secrets?: string | readonly string[];
  /** Where `@Fenced()` remembers what it has seen. */
  gate?: FenceGate;
  /**
   * How far a fence that comes with a call may be ahead of this machine's clock. One that is further would lock every
   * honest writer out.
   * @default '1d'
   */
  ahead?: Duration;
}

/** Checked, in milliseconds, complete. */
export interface ResolvedFencing {
  readonly secrets: readonly string[];
  readonly gate: FenceGate | undefined;
  readonly ahead: number;
}

const KNOWN: Record<keyof FencingOptions, true> = { secrets: true, gate: true, ahead: true };
const SHORTEST_SECRET = 16;

export function resolveFencing(options: FencingOptions = {}): ResolvedFencing {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(BAD_OPTION('fencing', options, 'an object'));
  }
  assertKnown(options, KNOWN);
  const { secrets = [], gate, ahead = '1d' } = options;
  // An environment variable that is not set: calls would leave this service unsigned, and be refused elsewhere.
  if ('secrets' in options && options.secrets === undefined) throw new TypeError(BAD_SECRETS());
  if (gate !== undefined && !(gate instanceof FenceGate)) {
    throw new TypeError(
      BAD_OPTION('fencing.gate', gate, 'a FenceGate, such as new RedisFenceGate(client)'),
    );
  }
  const all = typeof secrets === 'string' ? [secrets] : secrets;
  const isSecret = (secret: unknown): boolean =>
    typeof secret === 'string' && Buffer.byteLength(secret) >= SHORTEST_SECRET;
  if (!Array.isArray(all) || !all.every(isSecret)) throw new TypeError(BAD_SECRETS());
  return { secrets: [...(all as string[])], gate, ahead: parseDuration(ahead, 'fencing.ahead') };
}

const secretsOf = new WeakMap<LeaseEvents, readonly string[]>();

/** An application signs what leaves it with its own secret: found by whose lease the fence is. */
export function signWith(events: LeaseEvents, secrets: readonly string[]): void {
  secretsOf.set(events, secrets);
}

export const signerOf = (events: LeaseEvents | undefined): string | undefined =>
  events && secretsOf.get(events)?.[0];
