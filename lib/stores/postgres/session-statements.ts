import { NOW, writable } from './statements.js';
import type { Table } from './table.js';

/** The number of an advisory lock as pg_locks has it. */
const id = '((classid::bigint << 32) | objid::bigint)';

const held = `
  FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/**
 * Which run of which server: another after a crash, and on a standby that was promoted. What it finds in a row of
 * another one was not freed by the end of its holder's connection, which may not even know.
 */
const SERVER = '(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint';

/** What tells people, and the next fence, of locks that are themselves nothing but a number. */
export const createSessionSql = ({
  leases,
}: Table): string => `CREATE TABLE IF NOT EXISTS ${leases} (
  key text COLLATE "C" PRIMARY KEY,
  lock bigint NOT NULL,
  fence bigint NOT NULL,
  owner text NOT NULL,
  instance text NOT NULL,
  since bigint NOT NULL,
  until bigint NOT NULL,
  server bigint NOT NULL
) WITH (fillfactor = 50);`;

/** Until when its holder said; it was not released before, which would have set the time to that moment. */
const isOfAnother = `(server <> ${SERVER} AND until > ${NOW})`;
const isTaken = `(lock IN (SELECT ${id} ${held}) OR ${isOfAnother})`;

export function sessionStatementsFor({ leases }: Table) {
  const columns = `key, lock::text AS lock, fence::text AS fence, owner, instance, since::text AS since,
  until::text AS until, ${NOW}::text AS now`;
  return {
    open: `WITH ${writable('a', leases, 'until')} SELECT ${NOW}::text AS now`,

    /**
     * $1 key, $2 lock, $3 ttl µs, $4 owner, $5 instance, $6 deadline µs. The lock decides, among those of
     * one run of the server; what another run had granted ends by its time. The row tells of it.
     */
    claim: `
WITH asked AS MATERIALIZED (
  SELECT ${NOW} AS now
), locked AS MATERIALIZED (
  SELECT now, CASE
    WHEN now > $6::bigint THEN NULL
    WHEN EXISTS (SELECT FROM ${leases} AS l WHERE l.key = $1::text AND ${isOfAnother}) THEN false
    ELSE pg_try_advisory_lock($2::bigint)
  END AS got FROM asked
), granted AS (
  INSERT INTO ${leases} AS l (key, lock, fence, owner, instance, since, until, server)
  SELECT $1::text, $2::bigint, now, $4::text, $5::text, now, now + $3::bigint, ${SERVER} FROM locked WHERE got
  ON CONFLICT (key) DO UPDATE SET lock = excluded.lock, fence = greatest(l.fence + 1, excluded.fence),
    owner = excluded.owner, instance = excluded.instance, since = excluded.since, until = excluded.until,
    server = excluded.server
  RETURNING l.fence
)
SELECT coalesce(got::text, 'late') AS got, (SELECT fence FROM granted)::text AS fence, now::text AS seen,
  (SELECT until FROM ${leases} WHERE key = $1::text)::text AS until, ${NOW}::text AS now,
  pg_backend_pid()::text AS pid
FROM locked`,

    /** $1 keys, $2 fences, $3 ttls µs. The locks that this session holds, after its rows tell until when. */
    renew: `
WITH renewed AS (
  UPDATE ${leases} AS l SET until = greatest(l.until, ${NOW} + a.ttl)
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS a (key, fence, ttl)
  WHERE l.key = a.key AND l.fence = a.fence
  RETURNING 1
)
SELECT (SELECT count(*) FROM renewed)::text AS renewed, ${NOW}::text AS now, pg_backend_pid()::text AS pid,
  (SELECT coalesce(string_agg(${id}::text, ','), '') ${held} AND pid = pg_backend_pid()) AS locks`,

    /** $1 key, $2 lock, $3 fence. */
    release: `
WITH told AS (
  UPDATE ${leases} SET until = ${NOW} WHERE key = $1::text AND fence = $3::bigint RETURNING 1
)
SELECT (SELECT count(*) FROM told)::text AS told, pg_advisory_unlock($2::bigint)::text AS freed`,

    /** $1 lock: of a claim of which nobody knows how far it came. */
    unlock: `SELECT pg_advisory_unlock($1::bigint)::text AS freed`,

    /** $1 key. */
    inspect: `
SELECT ${columns} FROM ${leases} WHERE key = $1::text AND ${isTaken}`,

    /** $1 beginning, $2 the last key of the page before. */
    list: `
SELECT ${columns} FROM ${leases}
WHERE key >= $1::text AND starts_with(key, $1::text) AND ($2::text IS NULL OR key > $2::text)
  AND ${isTaken}
ORDER BY key LIMIT 500`,

    /** $1 how many, $2 retention µs. Rows whose lock nobody holds, and whose fence need not be remembered any more. */
    sweep: `
WITH old AS (
  SELECT key FROM ${leases}
  WHERE until + $2::bigint < ${NOW} AND lock NOT IN (SELECT ${id} ${held})
  LIMIT $1::int FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${leases} AS l USING old WHERE l.key = old.key AND l.until + $2::bigint < ${NOW}
  RETURNING 1
)
SELECT (SELECT count(*) FROM gone)::text AS most`,
  };
}
