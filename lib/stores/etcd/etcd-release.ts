import { ETCD_RELEASE_IN_DOUBT } from '../../lease.messages.js';
import type { Hold, ReleaseHow } from '../lease-store.js';
import type { EtcdParts } from './etcd-claim.js';
import type { EtcdLease } from './etcd-leases.js';
import { keptValue, secondsOf } from './etcd-place.js';
import { get, isThere, put, take, transact } from './etcd-txn.js';

/** What a release leaves behind, each under an etcd lease of its own. */
interface Left {
  readonly name: string;
  readonly value: string;
  readonly lease: EtcdLease;
}

/**
 * Frees a key if it is the token's, and in the same step leaves behind what it was told to: a kept place, a mark that
 * the work is done. The etcd lease of the claim is ended after that, and with it any request of the claim that is
 * still under way.
 */
export async function releaseEtcd(
  parts: EtcdParts,
  hold: Hold,
  how: ReleaseHow,
  until: number,
): Promise<boolean> {
  const left = await leaveBehind(parts, hold, how, until);
  const ask = (within: number): Promise<boolean | undefined> => free(parts, hold, left, within);
  let isFreed: boolean | undefined;
  try {
    isFreed = await ask(until);
  } catch (error) {
    // What it leaves behind may be there already, and is not to be taken away, or to stay without it.
    if (left.length > 0) parts.leases.insist(secondsOf(hold.ttl), ask);
    throw error;
  }
  if (isFreed === undefined) throw new Error(ETCD_RELEASE_IN_DOUBT(hold.key));
  return isFreed;
}

/** Whether it was held; nothing when there is no telling. */
async function free(
  { client, leases, names }: EtcdParts,
  { key, token, ttl }: Hold,
  left: readonly Left[],
  until: number,
): Promise<boolean | undefined> {
  const own = names.holder(key, token);
  const txn = {
    compare: [isThere(own)],
    success: [take(own), ...left.map(({ name, value, lease }) => put(name, value, lease.id))],
    failure: [own, ...left.map(({ name }) => name)].map((one) => get({ key: one })),
  };
  const { value, isDoubtful } = await transact(client, txn, until);
  if (value.succeeded) {
    for (const { lease } of value.found[0]!) leases.end({ id: lease, seconds: secondsOf(ttl) });
    return true;
  }
  // A try before this one may have freed it: what it left behind tells, if there is any.
  if (left.some(({ lease }, i) => value.found[i + 1]![0]?.lease === lease.id)) return true;
  for (const { lease } of left) leases.end(lease);
  return isDoubtful ? undefined : false;
}

async function leaveBehind(
  { leases, names }: EtcdParts,
  { key, token, permits }: Hold,
  { keepFor = 0, done }: ReleaseHow,
  until: number,
): Promise<readonly Left[]> {
  const left: Promise<Left>[] = [];
  const leave = async (ms: number, name: string, value: (s: number) => string): Promise<Left> => {
    const lease = await leases.grant(secondsOf(ms), until);
    return { name, value: value(lease.seconds), lease };
  };
  if (keepFor > 0) {
    left.push(leave(keepFor, names.kept(key, token), (seconds) => keptValue(permits, seconds)));
  }
  if (done !== undefined) left.push(leave(done.remember, names.mark(key, done.once), () => ''));
  try {
    return await Promise.all(left);
  } catch (error) {
    for (const one of left) {
      void one.then(
        ({ lease }) => leases.end(lease),
        () => {},
      );
    }
    throw error;
  }
}
