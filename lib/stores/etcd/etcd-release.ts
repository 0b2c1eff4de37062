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
  const { client, leases, names } = parts;
  const own = names.holder(hold.key, hold.token);
  const left = await leaveBehind(parts, hold, how, until);
  let isFreed = false;
  try {
    const txn = {
      compare: [isThere(own)],
      success: [take(own), ...left.map(({ name, value, lease }) => put(name, value, lease.id))],
      failure: [own, ...left.map(({ name }) => name)].map((key) => get({ key })),
    };
    const { value, isDoubtful } = await transact(client, txn, until);
    if (value.succeeded) {
      isFreed = true;
      for (const { lease } of value.found[0]!)
        leases.end({ id: lease, seconds: secondsOf(hold.ttl) });
      return true;
    }
    if (!isDoubtful) return false;
    // A try before this one may have freed it: what it left behind tells, if there is any.
    isFreed = left.some(({ lease }, i) => value.found[i + 1]![0]?.lease === lease.id);
    if (isFreed) return true;
    throw new Error(ETCD_RELEASE_IN_DOUBT(hold.key));
  } finally {
    if (!isFreed) for (const { lease } of left) leases.end(lease);
  }
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
  return Promise.all(left);
}
