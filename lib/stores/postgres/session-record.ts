import type { LeaseRecord } from '../lease-store.js';
import type { Row } from './postgres-connection.js';

/** What the row of a lock that is held says, for people. */
export function toSessionRecord(row: Row): LeaseRecord {
  const left = Math.max(0, Math.ceil((Number(row['until']) - Number(row['now'])) / 1_000));
  return {
    key: String(row['key']),
    freeInMs: left,
    holders: [
      {
        instance: String(row['instance']),
        fence: Number(row['fence']),
        owner: String(row['owner']),
        since: new Date(Number(row['since']) / 1_000),
        expiresInMs: left,
      },
    ],
  };
}
