import { ownerPrefix, type LeaseRecord } from '../lease-store.js';
import { majorityOf, type NodeRecord } from './voter.js';
import type { Tally } from './ballot.js';

type Looks = Tally<NodeRecord | undefined>;

/** What a majority of so many nodes agrees on: nothing when nobody has the key on a majority of them. */
export function agreedRecord(key: string, looks: Looks, count: number): LeaseRecord | null {
  const agreed = mostAgreed(looks, count);
  if (agreed === undefined) return null;
  const lefts = agreed.map(({ leftMs }) => leftMs).toSorted((a, b) => a - b);
  // Free when so few have it that the others are a majority.
  const freeInMs = lefts[agreed.length - majorityOf(count)]!;
  const [first] = agreed;
  const { token, instance } = first!;
  if (token === '') return { key, holders: [], freeInMs };
  const settled = agreed.filter((record) => record.settled);
  const fence = Math.max(...(settled.length > 0 ? settled : agreed).map((record) => record.fence));
  const since = new Date(Math.min(...agreed.map((record) => record.since)));
  const owner = ownerPrefix(token);
  return { key, holders: [{ instance, fence, owner, since, expiresInMs: freeInMs }], freeInMs };
}

/** Whether more answers could change what a majority agrees on. */
export function isAgreed(looks: Looks, count: number): boolean {
  const free = looks.countOf((record) => record === undefined);
  return free >= majorityOf(count) || mostAgreed(looks, count) !== undefined;
}

function mostAgreed({ answers }: Looks, count: number): readonly NodeRecord[] | undefined {
  const byToken = new Map<string, NodeRecord[]>();
  for (const record of answers.values()) {
    if (record === undefined) continue;
    const same = byToken.get(record.token) ?? [];
    byToken.set(record.token, same);
    same.push(record);
  }
  return [...byToken.values()].find((records) => records.length >= majorityOf(count));
}
