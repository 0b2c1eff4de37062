import type { Hold, RenewOutcome } from '../lease-store.js';
import type { TxnAnswer } from './etcd-answers.js';
import type { EtcdParts } from './etcd-claim.js';
import type { EtcdLease } from './etcd-leases.js';
import { inParallel } from './in-parallel.js';
import { placeOf, secondsOf, valueFor, type Place } from './etcd-place.js';
import { get, isUnchanged, put, transact } from './etcd-txn.js';

/** A server allows 128 steps in one transaction. */
const BATCH = 100;
const IN_FLIGHT = 4;

export async function renewEtcd(
  parts: EtcdParts,
  holds: readonly Hold[],
  until: number,
): Promise<readonly RenewOutcome[]> {
  const batches: (readonly Hold[])[] = [];
  for (let i = 0; i < holds.length; i += BATCH) batches.push(holds.slice(i, i + BATCH));
  const outcomes = await inParallel(batches, IN_FLIGHT, (some) => renewSome(parts, some, until));
  return outcomes.flat();
}

/**
 * Looks whether each is still there and then keeps its etcd lease alive. The look is answered by a quorum; a leader
 * that was deposed and does not know it yet answers the other alone, from its memory, and what it prolongs there is not
 * prolonged. So the two must be of one term: then whoever was elected since the look has begun to count the
 * lease anew since the look, which was sent after the holder began to count (rule 3).
 */
async function renewSome(
  parts: EtcdParts,
  holds: readonly Hold[],
  until: number,
): Promise<readonly RenewOutcome[]> {
  const { term, places } = await look(parts, holds, until);
  const placeAt = (i: number): Place => places[i] as Place;
  const isLonger = (i: number): boolean => placeAt(i).seconds < secondsOf(holds[i]!.ttl);
  const outcomes = places.map((place): RenewOutcome => (place === undefined ? 'gone' : 'unknown'));
  const held = holds.map((_, i) => i).filter((i) => isPlace(places[i]));
  const same = held.filter((i) => !isLonger(i));
  const longer = held.filter(isLonger);
  const keepAll = async (): Promise<void> => {
    const ids = same.map((i) => placeAt(i).lease);
    const kept = await parts.leases.keepAlive(ids, until);
    for (const [at, i] of same.entries()) {
      const { seconds, term: then } = kept[at]!;
      const isKept = then === term && seconds >= placeAt(i).seconds;
      outcomes[i] = isKept ? 'renewed' : 'unknown';
    }
  };
  const prolongAll = inParallel(longer, IN_FLIGHT, async (i) => {
    outcomes[i] = await prolong(parts, holds[i]!, placeAt(i), until);
  });
  await Promise.all([keepAll(), prolongAll]);
  await findTheGone(parts, holds, outcomes, until);
  return outcomes;
}

/** What is under the name of a holder: its place, what is none, or nothing. */
type Found = Place | 'strange' | undefined;

const isPlace = (found: Found): found is Place => typeof found === 'object';

interface Sight {
  readonly term: number;
  readonly places: readonly Found[];
}

async function look(
  { client, names }: EtcdParts,
  holds: readonly Hold[],
  until: number,
): Promise<Sight> {
  const success = holds.map(({ key, token }) => get({ key: names.holder(key, token) }));
  const { value } = await transact(client, { success }, until);
  return { term: value.term, places: holds.map((hold, i) => placeIn(value, i, hold)) };
}

/** An etcd lease has one time for all its life. A longer one takes another; the place, and so the fence, stays. */
async function prolong(
  parts: EtcdParts,
  hold: Hold,
  place: Place,
  until: number,
): Promise<RenewOutcome> {
  const { leases } = parts;
  const lease = await leases.grant(secondsOf(hold.ttl), until);
  try {
    return (await move(parts, place, lease, lease, until)) ? 'renewed' : 'unknown';
  } catch (error) {
    // Neither of the two may be ended while there is no telling which it is under: the key would be free, though held.
    const own = { id: place.lease, seconds: place.seconds };
    leases.insist(lease.seconds, (again) => move(parts, place, own, lease, again));
    throw error;
  }
}

/**
 * Puts a place under another etcd lease, or under its own again: that changes it too, so a try for the other that is
 * still under way fails. Then one of the two is under nobody and is ended. Says whether it is the other.
 */
async function move(
  { client, leases }: EtcdParts,
  place: Place,
  to: EtcdLease,
  other: EtcdLease,
  until: number,
): Promise<boolean> {
  const { name } = place;
  const txn = {
    compare: [isUnchanged(name, place.modRevision)],
    success: [put(name, valueFor(place, to.seconds), to.id)],
    failure: [get({ key: name })],
  };
  const { value } = await transact(client, txn, until);
  // Or by a try whose answer was lost.
  const under = value.succeeded ? to.id : value.found[0]![0]?.lease;
  const isOther = under === other.id;
  leases.end(isOther ? { id: place.lease, seconds: place.seconds } : other);
  return isOther;
}

/** Of those that could not be renewed: not to be there any more is loss, anything else is tried again (rule 6). */
async function findTheGone(
  parts: EtcdParts,
  holds: readonly Hold[],
  outcomes: RenewOutcome[],
  until: number,
): Promise<void> {
  const doubtful = holds.map((_, i) => i).filter((i) => outcomes[i] === 'unknown');
  if (doubtful.length === 0) return;
  const asked = doubtful.map((i) => holds[i]!);
  const { places } = await look(parts, asked, until);
  for (const [at, i] of doubtful.entries()) if (places[at] === undefined) outcomes[i] = 'gone';
}

/** What is strange is one key's trouble, and not that of the others that are renewed with it. */
function placeIn({ found }: TxnAnswer, i: number, { key }: Hold): Found {
  const [mine] = found[i]!;
  if (mine === undefined) return undefined;
  try {
    return placeOf(key, mine);
  } catch {
    return 'strange';
  }
}
