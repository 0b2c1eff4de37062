import { randomUUID } from 'node:crypto';
import { LeaseLostException } from '../../exceptions/lease-lost.exception.js';
import type { Lease } from '../../lease/lease.js';
import {
  BAD_ISOLATION,
  BAD_LEASE,
  BAD_POSTGRES_ANSWER,
  BAD_QUERYABLE,
  NO_TRANSACTION,
} from '../../lease.messages.js';
import { lockId } from './lock-id.js';
import { GUARD, SPOIL } from './statements.js';

/**
 * What sends a statement in your transaction: a client of pg, a `QueryRunner` of TypeORM, or a function of yours around
 * any other. Gives the rows, or an object that has them.
 *
 * @publicApi
 */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/**
 * Makes the transaction rely on the lease: takes the guard of its keys, shared, until the transaction ends, and then
 * looks whether they are held. In this order: whoever takes a key needs its guard alone, so that after the look nobody
 * can take it before this transaction has ended, and before the look whoever took it can be seen. A renewal needs no
 * guard.
 */
export async function assertHeldIn(client: Queryable, lease: Lease, held: string): Promise<void> {
  if (typeof client?.query !== 'function') throw new TypeError(BAD_QUERYABLE(client));
  if (!Array.isArray(lease?.holdings)) throw new TypeError(BAD_LEASE(lease));
  try {
    // The clock of this process first: it needs nobody's answer (rule 4).
    lease.assertHeld();
    await guard(client, lease, held);
  } catch (error) {
    // So that it cannot be committed by who does not heed the error either.
    await client.query(SPOIL, []).catch(() => undefined);
    throw error;
  }
}

async function guard(client: Queryable, lease: Lease, held: string): Promise<void> {
  const holdings = lease.holdings.toSorted((a, b) => (a.hold.key < b.hold.key ? -1 : 1));
  const word = randomUUID();
  const locks = holdings.map(({ hold }) => lockId('guard', hold.key));
  await client.query(GUARD, [JSON.stringify(locks), word]);
  // The public fence tells one acquisition from another; the secret token need not be in your logs (rule 15).
  const wanted = holdings.map(({ hold, fence }) => ({ key: hold.key, fence: String(fence) }));
  const row = firstRow(await client.query(held, [JSON.stringify(wanted)]));
  if (row?.['guard'] !== word) throw new Error(NO_TRANSACTION());
  const isolation = String(row['isolation']);
  if (!/^read (un)?committed$/.test(isolation)) throw new Error(BAD_ISOLATION(isolation));
  if (typeof row['held'] !== 'string') throw new Error(BAD_POSTGRES_ANSWER('assertHeld'));
  const places = new Set(row['held'].split(','));
  const lost = holdings.find((_, i) => !places.has(String(i + 1)));
  if (lost !== undefined) throw new LeaseLostException(lost.key, 'taken');
}

function firstRow(answer: unknown): Readonly<Record<string, unknown>> | undefined {
  const { rows = answer } = (answer ?? {}) as { rows?: unknown };
  return Array.isArray(rows) ? (rows[0] as Record<string, unknown> | undefined) : undefined;
}
