import type { LeaseRecord } from '../lease-store.js';
import type { KeyValue } from './etcd-answers.js';
import type { EtcdParts } from './etcd-claim.js';
import type { KeyRange } from './etcd-names.js';
import { placeOf } from './etcd-place.js';
import { get, transact } from './etcd-txn.js';

const PAGE = 500;

export async function inspectEtcd(
  parts: EtcdParts,
  key: string,
  until: number,
): Promise<LeaseRecord | null> {
  const found = await page(parts, { ...parts.names.holders(key), limit: '0' }, until);
  return recordOf(parts, key, found, until);
}

export async function* listEtcd(
  parts: EtcdParts,
  prefix: string,
  within: number,
): AsyncIterable<LeaseRecord> {
  const range = parts.names.beginningWith(prefix);
  let from = range.key;
  // Those of one key are next to each other, and may be on two pages.
  let key: string | undefined;
  let places: KeyValue[] = [];
  for (;;) {
    const until = performance.now() + within;
    const found = await page(parts, { ...range, key: from, limit: `${PAGE}` }, until);
    for (const one of found) {
      const its = parts.names.keyOf(one.name);
      if (its === undefined) continue;
      if (key !== undefined && its !== key) {
        const record = await recordOf(parts, key, places, performance.now() + within);
        if (record !== null) yield record;
        places = [];
      }
      key = its;
      places.push(one);
    }
    if (found.length < PAGE) break;
    from = Buffer.concat([found.at(-1)!.name, Buffer.of(0)]).toString('base64');
  }
  if (key === undefined) return;
  const record = await recordOf(parts, key, places, performance.now() + within);
  if (record !== null) yield record;
}

async function page(
  { client }: EtcdParts,
  range: KeyRange & { limit: string },
  until: number,
): Promise<readonly KeyValue[]> {
  return (await transact(client, { success: [get(range)] }, until)).value.found[0]!;
}

async function recordOf(
  { leases }: EtcdParts,
  key: string,
  found: readonly KeyValue[],
  until: number,
): Promise<LeaseRecord | null> {
  const places = found
    .map((one) => placeOf(key, one))
    .toSorted((a, b) => a.createRevision - b.createRevision);
  const ids = places.map(({ lease }) => lease);
  const ends = await leases.remaining(ids, until);
  // One whose lease has ended since is not there any more.
  const live = places
    .map((place, i) => ({ ...place, expiresInMs: ends[i]! }))
    .filter(({ expiresInMs }) => expiresInMs > 0);
  if (live.length === 0) return null;
  return {
    key,
    freeInMs: Math.min(...live.map(({ expiresInMs }) => expiresInMs)),
    holders: live.flatMap(({ holder, createRevision: fence, expiresInMs }) =>
      holder === undefined
        ? []
        : [{ ...holder, fence, since: new Date(holder.since), expiresInMs }],
    ),
  };
}
