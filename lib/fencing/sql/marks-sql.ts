import { NOW } from '../../stores/postgres/statements.js';
import type { Retention } from '../retention.js';
import { saidBy } from './gate-errors.js';

/** The beginning of what PostgreSQL says when a fence is stale: see {@link admitText}. */
const STALE = 'nestjs-lease: stale fence';
const REFUSED = /nestjs-lease: stale fence (\d+), (seen|floor) (\d+)/;

export const createMarksSql = (table: string): string => `CREATE TABLE IF NOT EXISTS ${table} (
  resource text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  forget_at bigint NOT NULL
) WITH (fillfactor = 50);`;

/**
 * One statement that admits or fails. It is text and nothing else, so that it goes through any library's raw query: a
 * resource is written as the hexadecimal digits of its bytes, a fence as its own digits, and neither can be more than
 * that (rule 14).
 *
 * Raises the mark if there is one: the row is locked from here to the end of the transaction, so that who comes next
 * waits, and then sees what was committed. Begins one otherwise, unless the fence is too old for that; by what the clock
 * says then, so that it does not matter if the mark was retired a moment ago. A stale fence makes the statement fail,
 * and with it the transaction: nobody commits it by not looking at the answer. PostgreSQL has no other way to fail
 * within a statement than to be asked for the number in a text that has none.
 */
export function admitText(
  table: string,
  retention: Retention,
  resource: string,
  fence: number,
): string {
  const forgetAt = forgetAtOf(retention, fence);
  const floor = retention.isForever ? '0::bigint' : `${NOW} - ${Math.floor(retention.kept / 2)}`;
  const highest = (excluded: string): string =>
    `fence = greatest(m.fence, ${excluded}), forget_at = greatest(m.forget_at, ${forgetAt})`;
  return `WITH given AS MATERIALIZED (
  SELECT ${textOf(resource)} AS resource, ${floor} AS floor
), raised AS (
  UPDATE ${table} AS m SET ${highest(`${fence}`)}
  FROM given AS g WHERE m.resource = g.resource
  RETURNING m.fence
), begun AS (
  INSERT INTO ${table} AS m (resource, fence, forget_at)
  SELECT g.resource, ${fence}, ${forgetAt} FROM given AS g
  WHERE NOT EXISTS (SELECT FROM raised) AND ${fence} >= g.floor
  ON CONFLICT (resource) DO UPDATE SET ${highest('excluded.fence')}
  RETURNING m.fence
), mark AS MATERIALIZED (
  SELECT g.floor, coalesce((SELECT fence FROM raised), (SELECT fence FROM begun)) AS fence FROM given AS g
)
SELECT CASE
    WHEN fence <= ${fence} THEN fence
    WHEN fence IS NULL THEN ('${STALE} ${fence}, floor ' || floor)::bigint
    ELSE ${failing(fence, 'fence')}
  END::text AS fence, ${WHERE_IT_WAS}
FROM mark`;
}

/**
 * The same for a resource that has a mark, and no row for one that has none. Nearly all have, and PostgreSQL, which reads
 * and plans a text anew each time it comes, spends less than half of the time on this.
 */
export function raiseText(
  table: string,
  retention: Retention,
  resource: string,
  fence: number,
): string {
  return `WITH raised AS (
  UPDATE ${table} AS m SET
    fence = CASE WHEN m.fence <= ${fence} THEN ${fence} ELSE ${failing(fence, 'm.fence')} END,
    forget_at = greatest(m.forget_at, ${forgetAtOf(retention, fence)})
  WHERE m.resource = ${textOf(resource)}
  RETURNING m.fence
)
SELECT fence::text AS fence, ${WHERE_IT_WAS}
FROM raised`;
}

/**
 * In the extended protocol a statement is a few messages and begins later than what it is alone in; but it is a cursor
 * then. Whatever has one open is asked again.
 */
const WHERE_IT_WAS = `(
    now() < statement_timestamp() AND NOT EXISTS (SELECT FROM pg_cursors WHERE NOT is_holdable)
  )::text AS in_transaction, txid_current()::text AS transaction`;

const textOf = (resource: string): string =>
  `convert_from(decode('${Buffer.from(resource).toString('hex')}', 'hex'), 'UTF8')`;

const failing = (fence: number, seen: string): string =>
  `('${STALE} ${fence}, seen ' || ${seen})::bigint`;

const forgetAtOf = (retention: Retention, fence: number): string =>
  retention.isForever
    ? String(Number.MAX_SAFE_INTEGER)
    : `greatest(${NOW}, ${fence}) + ${retention.kept}`;

/** In which transaction the next statement is, or '' if in one of its own. */
export const WHICH_TRANSACTION = `SELECT coalesce(txid_current_if_assigned()::text, '') AS transaction`;

/** What is not needed any more. Who is admitted at the same moment waits for it, and is measured by its fence's age. */
export const retireText = (table: string, atMost: number): string => `WITH old AS (
  SELECT resource FROM ${table} WHERE forget_at < ${NOW} LIMIT ${atMost} FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${table} AS m USING old WHERE m.resource = old.resource AND m.forget_at < ${NOW} RETURNING 1
)
SELECT count(*)::text AS retired FROM gone`;

/** What a failed admission says of the mark; nothing if it failed for another reason. */
export function refusalIn(
  error: unknown,
): { readonly highest: number; readonly isFloor: boolean } | undefined {
  // The message of a library may hold the statement too, which has words of a refusal and no numbers.
  for (const { message } of saidBy(error)) {
    const [, , kind, highest] = REFUSED.exec(message) ?? [];
    if (highest !== undefined) return { highest: Number(highest), isFloor: kind === 'floor' };
  }
  return undefined;
}
