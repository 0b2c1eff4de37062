import { ETCD_STRANGE_VALUE } from '../../lease.messages.js';
import { ownerPrefix, type Claim } from '../lease-store.js';
import type { KeyValue } from './etcd-answers.js';

/** One that a key is held by, or is kept taken by after a release. */
export interface Place {
  /** In base64, as it was asked for. */
  readonly name: string;
  readonly lease: string;
  /** The fence: the revision of the cluster in which the place was taken. The same for as long as it is held. */
  readonly createRevision: number;
  readonly modRevision: number;
  readonly permits: number;
  /** Of its etcd lease. */
  readonly seconds: number;
  /** Nobody when it is only kept. */
  readonly holder:
    { readonly instance: string; readonly owner: string; readonly since: number } | undefined;
}

/** etcd counts whole seconds. Rounded up: never free before trust ends (rule 3). */
export const secondsOf = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000));

export function valueOf({ permits, token, instance }: Claim, seconds: number): string {
  const since = Date.now();
  return encode({ permits, seconds, instance, owner: ownerPrefix(token), since });
}

/** The same place, for another time. */
export function valueFor({ permits, holder }: Place, seconds: number): string {
  return encode({ permits, seconds, ...holder });
}

export function keptValue(permits: number, seconds: number): string {
  return encode({ permits, seconds });
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64');

/** A value that is no place is left alone: the key cannot be claimed, and that is no contention (rule 9). */
export function placeOf(key: string, found: KeyValue): Place {
  const { name, lease, createRevision, modRevision } = found;
  const { permits, seconds, instance, owner, since } = parse(found.value);
  if (!isCount(permits) || !isCount(seconds) || lease === '0') {
    throw new Error(ETCD_STRANGE_VALUE(key));
  }
  const isHeld =
    typeof instance === 'string' && typeof owner === 'string' && typeof since === 'number';
  const holder = isHeld ? { instance, owner, since } : undefined;
  const place = { name: name.toString('base64'), lease, createRevision, modRevision };
  return { ...place, permits, seconds, holder };
}

function parse(value: Buffer): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(value.toString()) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0;

/**
 * Whose end a claim for `permits` has to wait for: of these places all but as many as may stay beside it. Nobody's
 * when it can be had now. Who has the key alone is respected by those who would share it, and the reverse.
 */
export function inTheWay(places: readonly Place[], permits: number): readonly Place[] {
  const alone = places.filter((place) => place.permits === 1);
  if (alone.length > 0) return alone;
  return places.length < permits ? [] : places;
}
