import { createHash } from 'node:crypto';

/** What an advisory lock is about; each has numbers of its own. */
type About = 'guard' | 'watch' | 'session' | 'create';

/**
 * The number of an advisory lock: 64 bits of a SHA-256. Two keys with the same number share a lock, which can keep
 * one of them waiting for the other and never lets two hold one. The table is no part of it: processes that write its
 * name differently must still meet.
 */
export function lockId(about: About, key: string): string {
  const hash = createHash('sha256').update(`nestjs-lease ${about} ${key}`).digest();
  return String(hash.readBigInt64BE());
}
