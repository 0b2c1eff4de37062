import { BAD_POSTGRES_ANSWER } from '../../lease.messages.js';
import type { Row } from './postgres-connection.js';

/** A fence as the server writes it: digits and nothing else, in a number that is exact. */
export function fenceOf(text: unknown): number {
  const fence = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : 0;
  if (!(fence > 0 && Number.isSafeInteger(fence))) throw new Error(BAD_POSTGRES_ANSWER('acquire'));
  return fence;
}

/** A moment of the server's clock in µs since 1970. */
export function microsOf(text: unknown): number {
  if (typeof text !== 'string' || !/^\d{16}$/.test(text)) {
    throw new Error(BAD_POSTGRES_ANSWER('now'));
  }
  return Number(text);
}

/** The key after which the next page begins: another than that of the page before, or there would be no end. */
export function nextPage(rows: readonly Row[], last: string | null): string {
  const key = rows.at(-1)!['key'];
  if (typeof key !== 'string' || key === last) throw new Error(BAD_POSTGRES_ANSWER('list'));
  return key;
}
