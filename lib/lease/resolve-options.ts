import {
  BAD_OPTION,
  BAD_OPTIONS,
  NO_PERMITS,
  NOT_OF_THIS_STORE,
  UNKNOWN_OPTION,
} from '../lease.messages.js';
import type { LeaseOptions } from '../lease.options.js';
import type { LeaseStore } from '../stores/lease-store.js';
import { LONGEST, parseDuration } from './duration.js';
import { assertKey } from './key.js';

/** Options as the engine uses them: checked, in milliseconds, complete. */
export interface ResolvedOptions {
  readonly ttl: number;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  readonly renew: boolean;
  readonly minHold: number;
  readonly maxHold: number;
  readonly permits: number;
  readonly once: string | undefined;
  readonly remember: number;
  readonly awaitRelease: boolean;
}

const MAX_PERMITS = 10_000;
const REMEMBER = 86_400_000;

/** Every option of a lease. */
export const LEASE_OPTIONS: Record<keyof LeaseOptions, true> = {
  ttl: true,
  wait: true,
  signal: true,
  renew: true,
  minHold: true,
  maxHold: true,
  permits: true,
  once: true,
  remember: true,
  awaitRelease: true,
};

/** Checks what a user wrote against what the store can do; every complaint names the option. */
export function resolveOptions(
  options: LeaseOptions | undefined,
  defaults: { readonly ttl: number; readonly wait: number },
  store: LeaseStore,
): ResolvedOptions {
  if (options === undefined) options = {};
  if (typeof options !== 'object' || options === null) throw new TypeError(BAD_OPTIONS(options));
  assertKnown(options, LEASE_OPTIONS);
  const { limits } = store;
  const { signal, renew = true, permits = 1, once, awaitRelease = false } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(BAD_OPTION('signal', signal, 'an AbortSignal'));
  }
  if (typeof renew !== 'boolean') throw new TypeError(BAD_OPTION('renew', renew, 'true or false'));
  if (typeof awaitRelease !== 'boolean') {
    throw new TypeError(BAD_OPTION('awaitRelease', awaitRelease, 'true or false'));
  }
  if (!Number.isInteger(permits)) {
    throw new TypeError(BAD_OPTION('permits', permits, 'a whole number'));
  }
  if (permits < 1 || permits > MAX_PERMITS) {
    throw new RangeError(BAD_OPTION('permits', permits, `from 1 to ${MAX_PERMITS}`));
  }
  if (permits > 1 && !limits.permits) throw new RangeError(NO_PERMITS(store.name));
  if (once !== undefined) assertKey(once, 'once');
  if (once !== undefined && limits.once === false) {
    throw new RangeError(NOT_OF_THIS_STORE('once', store.name));
  }
  const duration = (
    name: keyof LeaseOptions,
    fallback: number,
    min: number,
    max = LONGEST,
  ): number =>
    options[name] === undefined ? fallback : parseDuration(options[name], name, { min, max });
  return {
    // The default is checked too: it may not fit this store.
    ttl: parseDuration(options.ttl === undefined ? defaults.ttl : options.ttl, 'ttl', {
      min: limits.minTtl,
      max: limits.maxTtl,
    }),
    wait: duration('wait', defaults.wait, 0, Infinity),
    signal,
    renew,
    minHold:
      limits.minHold === false ? noMinHold(options.minHold, store) : duration('minHold', 0, 0),
    maxHold: duration('maxHold', Infinity, 1),
    permits,
    once,
    remember: duration('remember', REMEMBER, 1),
    awaitRelease,
  };
}

function noMinHold(minHold: LeaseOptions['minHold'], store: LeaseStore): number {
  if (minHold !== undefined) throw new RangeError(NOT_OF_THIS_STORE('minHold', store.name));
  return 0;
}

/** A misspelt option would be a promise silently not kept. */
export function assertKnown(options: object, known: Record<string, true>): void {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name)) throw new TypeError(UNKNOWN_OPTION(name, Object.keys(known)));
  }
}
