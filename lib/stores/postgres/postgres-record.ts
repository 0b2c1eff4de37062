import { BAD_POSTGRES_ANSWER } from '../../lease.messages.js';
import { ownerPrefix, type LeaseRecord } from '../lease-store.js';
import type { Row } from './postgres-connection.js';

interface Holder {
  readonly token: string | null;
  readonly fence: number;
  readonly instance: string;
  /** µs of the server's clock. */
  readonly since: number;
  readonly until: number;
}

/** What a row says, for people. */
export function toRecord({ key, holders, now }: Row): LeaseRecord | null {
  const at = Number(now);
  const live = read(holders).filter(({ until }) => until > at);
  if (live.length === 0) return null;
  const left = (until: number): number => Math.ceil((until - at) / 1_000);
  return {
    key: String(key),
    freeInMs: Math.min(...live.map(({ until }) => left(until))),
    holders: live
      .toSorted((a, b) => a.fence - b.fence)
      .flatMap(({ token, instance, fence, since, until }) =>
        token === null
          ? []
          : [
              {
                instance,
                fence,
                owner: ownerPrefix(token),
                since: new Date(since / 1_000),
                expiresInMs: left(until),
              },
            ],
      ),
  };
}

function read(holders: unknown): Holder[] {
  try {
    const list: unknown = JSON.parse(String(holders));
    if (Array.isArray(list)) return list as Holder[];
  } catch {
    // Told below.
  }
  throw new Error(BAD_POSTGRES_ANSWER('inspect'));
}
