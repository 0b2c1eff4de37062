import type { Hold, RenewOutcome } from '../lease-store.js';
import type { TxnAnswer } from './etcd-answers.js';
import type { EtcdParts } from './etcd-claim.js';
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
  const isLonger = (i: number): boolean => places[i]!.seconds < secondsOf(holds[i]!.ttl);
  const held = holds.map((_, i) => i).filter((i) => places[i] !== undefined);
  const outcomes: RenewOutcome[] = holds.map(() => 'gone');
  const same = held.filter((i) => !isLonger(i));
  const longer = held.filter(isLonger);
  const keepAll = async (): Promise<void> => {
    const ids = same.map((i) => places[i]!.lease);
    const kept = await parts.leases.keepAlive(ids, until);
    for (const [at, i] of same.entries()) {
      const { seconds, term: then } = kept[at]!;
      const isKept = then === term && seconds >= places[i]!.seconds;
      outcomes[i] = isKept ? 'renewed' : 'unknown';
    }
  };
  const prolongAll = inParallel(longer, IN_FLIGHT, async (i) => {
    outcomes[i] = await prolong(parts, holds[i]!, places[i]!, until);
  });
  await Promise.all([keepAll(), prolongAll]);
  await findTheGone(parts, holds, outcomes, until);
  return outcomes;
}

interface Sight {
  readonly term: number;
  readonly places: readonly (Place | undefined)[];
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
  { client, leases, names }: EtcdParts,
  hold: Hold,
  place: Place,
  until: number,
): Promise<RenewOutcome> {
  const name = names.holder(hold.key, hold.token);
  const lease = await leases.grant(secondsOf(hold.ttl), until);
  let isTaken = false;
  try {
    const txn = {
      compare: [isUnchanged(name, place.modRevision)],
      success: [put(name, valueFor(place, lease.seconds), lease.id)],
      failure: [get({ key: name })],
    };
    const { value } = await transact(client, txn, until);
    // By a try whose answer was lost.
    isTaken = value.succeeded || value.found[0]![0]?.lease === lease.id;
    if (isTaken) leases.end({ id: place.lease, seconds: place.seconds });
    return isTaken ? 'renewed' : 'unknown';
  } finally {
    if (!isTaken) leases.end(lease);
  }
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

function placeIn({ found }: TxnAnswer, i: number, { key }: Hold): Place | undefined {
  const [mine] = found[i]!;
  return mine === undefined ? undefined : placeOf(key, mine);
}
