import type { Table } from './table.js';

/**
 * The server's time in µs since 1970, read when it is needed: `now()` stands still from the beginning of a
 * transaction. Nobody else's clock takes part (rule 3).
 */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

/** What is told and listened for when a key that somebody watches is released. */
export const CHANNEL = 'nestjs_lease';

const until = `(h ->> 'until')::bigint`;
const each = (holders: string): string => `jsonb_array_elements(${holders}) AS e (h)`;

/** The live holder with a token, if there is one. */
const mine = (holders: string, token: string, now: string): string =>
  `(SELECT h FROM ${each(holders)} WHERE h ->> 'token' = ${token} AND ${until} > ${now})`;

/**
 * When a claim for so many permits can succeed; NULL for now. A holder that has the key alone is respected by those
 * who would share it, and the reverse.
 */
const freeAt = (holders: string, permits: string, now: string): string => `(
  SELECT CASE
    WHEN bool_or(h ->> 'permits' = '1') THEN max(${until}) FILTER (WHERE h ->> 'permits' = '1')
    WHEN count(*) >= ${permits} THEN (array_agg(${until} ORDER BY ${until}))[count(*) - ${permits} + 1]
  END
  FROM ${each(holders)} WHERE ${until} > ${now})`;

const holder = (fence: string, now: string): string =>
  `jsonb_build_object('token', $2::text, 'permits', $4::int, 'fence', ${fence}, 'instance', $5::text, ` +
  `'since', ${now}, 'until', ${now} + $3::bigint)`;

/** A row outlives its use by the retention, and by ten ttls at least: the next fence is higher (rule 8). */
const forget = (end: string, ttl: string, retention: string): string =>
  `${end} + greatest(${retention}::bigint, 10 * ${ttl}::bigint)`;

/** The shared lock of a transaction that relies on a lease is held by somebody. */
const isGuarded = (id: string): string => `EXISTS (
  SELECT FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ShareLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = ${id}::bigint)`;

/** Writes nothing, and fails where nothing can be written: no rights, or a replica. */
export const writable = (name: string, table: string, column: string): string => `
  ${name}_insert AS (INSERT INTO ${table} SELECT * FROM ${table} WHERE false),
  ${name}_update AS (UPDATE ${table} SET ${column} = ${column} WHERE false),
  ${name}_delete AS (DELETE FROM ${table} WHERE false)`;

/** Every operation is one statement, and so one transaction of its own: a pooler may be in between. */
export function statementsFor({ leases, done }: Table) {
  return {
    /** What is needed to begin: that both tables are there and may be written to, and the time. */
    open: `
WITH ${writable('a', leases, 'fence')}, ${writable('b', done, 'until')}
SELECT ${NOW}::text AS now`,

    /**
     * $1 key, $2 token, $3 ttl µs, $4 permits, $5 instance, $6 deadline µs, $7 guard lock, $8 once, $9 retention µs.
     *
     * Looks first, without a lock: a claim that is refused writes nothing. What looks free is then taken only if it is
     * free in the newest version of its row, which the conflict locks (rule 1); no row in \`granted\` although it may
     * be taken means that somebody was faster, and that it has to be asked again. With a unit of work it is also asked
     * again when anybody was granted the key since the look: the mark was looked for then.
     */
    claim: `
WITH asked AS MATERIALIZED (
  SELECT ${NOW} AS now
), seen AS MATERIALIZED (
  SELECT now, l.fence,
    ${mine('l.holders', '$2::text', 'now')} IS NOT NULL AS again,
    ${freeAt('l.holders', '$4::int', 'now')} AS free_at,
    $8::text IS NOT NULL AND EXISTS (
      SELECT FROM ${done} AS d WHERE d.key = $1::text AND d.once = $8::text AND d.until > now
    ) AS done
  FROM asked LEFT JOIN ${leases} AS l ON l.key = $1::text
), judged AS MATERIALIZED (
  SELECT *, CASE
    WHEN now > $6::bigint THEN 'late'
    WHEN again THEN 'again'
    WHEN done THEN 'done'
    WHEN free_at IS NOT NULL THEN 'held'
    ELSE 'free'
  END AS verdict
  FROM seen
), allowed AS MATERIALIZED (
  SELECT *, CASE verdict
    WHEN 'again' THEN true
    WHEN 'free' THEN pg_try_advisory_xact_lock($7::bigint)
    ELSE false
  END AS may
  FROM judged
), granted AS (
  INSERT INTO ${leases} AS l (key, fence, holders, forget_at)
  SELECT $1::text, n.now, jsonb_build_array(${holder('n.now', 'n.now')}),
    ${forget('n.now + $3::bigint', '$3', '$9')}
  FROM (SELECT ${NOW} AS now FROM allowed WHERE may AND verdict = 'free' OFFSET 0) AS n
  WHERE n.now <= $6::bigint
  ON CONFLICT (key) DO UPDATE SET (fence, holders, forget_at) = (
    SELECT
      CASE WHEN m.h IS NULL THEN greatest(l.fence + 1, n.now) ELSE l.fence END,
      coalesce(
        (SELECT jsonb_agg(h) FROM ${each('l.holders')}
          WHERE ${until} > n.now AND h ->> 'token' IS DISTINCT FROM $2::text),
        '[]'
      ) || jsonb_build_array(CASE
        WHEN m.h IS NULL THEN ${holder('greatest(l.fence + 1, n.now)', 'n.now')}
        ELSE m.h || jsonb_build_object('until', greatest((m.h ->> 'until')::bigint, n.now + $3::bigint))
      END),
      greatest(l.forget_at, ${forget('n.now + $3::bigint', '$3', '$9')})
    FROM (SELECT ${NOW} AS now OFFSET 0) AS n
    LEFT JOIN LATERAL (
      SELECT h FROM ${each('l.holders')} WHERE h ->> 'token' = $2::text AND ${until} > n.now
    ) AS m ON true
  )
  WHERE ${NOW} <= $6::bigint
    AND ($8::text IS NULL OR l.fence = (SELECT fence FROM seen))
    AND (
      ${mine('l.holders', '$2::text', NOW)} IS NOT NULL
      OR ${freeAt('l.holders', '$4::int', NOW)} IS NULL
    )
  RETURNING (SELECT h ->> 'fence' FROM ${each('l.holders')} WHERE h ->> 'token' = $2::text) AS fence
), again AS (
  UPDATE ${leases} AS l
  SET holders = (
      SELECT jsonb_agg(CASE WHEN h ->> 'token' = $2::text
        THEN h || jsonb_build_object('until', greatest(${until}, ${NOW} + $3::bigint)) ELSE h END)
      FROM ${each('l.holders')}
    ),
    forget_at = greatest(l.forget_at, ${forget(`${NOW} + $3::bigint`, '$3', '$9')})
  FROM allowed
  WHERE allowed.verdict = 'again' AND l.key = $1::text AND ${NOW} <= $6::bigint
    AND ${mine('l.holders', '$2::text', NOW)} IS NOT NULL
  RETURNING (SELECT h ->> 'fence' FROM ${each('l.holders')} WHERE h ->> 'token' = $2::text) AS fence
)
SELECT verdict, may::text AS may, now::text AS seen, free_at::text AS free_at,
  coalesce((SELECT fence FROM granted), (SELECT fence FROM again)) AS fence,
  CASE WHEN verdict = 'free' AND NOT may THEN ${isGuarded('$7')} ELSE false END::text AS guarded,
  ${NOW}::text AS now
FROM allowed`,

    /**
     * $1 keys, $2 tokens, $3 ttls µs, $4 retention µs. One place per hold: $1[i], $2[i], $3[i]. The rows are locked in
     * the order of their keys, so that two who share several of them never wait for each other.
     */
    renew: `
WITH asked AS MATERIALIZED (
  SELECT a.key, jsonb_object_agg(a.token, a.ttl) AS ttls, max(a.ttl) AS longest
  FROM unnest($1::text[], $2::text[], $3::bigint[]) AS a (key, token, ttl) GROUP BY a.key
), locked AS MATERIALIZED (
  SELECT l.key FROM ${leases} AS l JOIN asked AS a ON a.key = l.key
  WHERE EXISTS (SELECT FROM ${each('l.holders')} WHERE a.ttls ? (h ->> 'token') AND ${until} > ${NOW})
  ORDER BY l.key FOR NO KEY UPDATE OF l
), renewed AS (
  UPDATE ${leases} AS l
  SET holders = (
      SELECT jsonb_agg(CASE WHEN a.ttls ? (h ->> 'token') AND ${until} > n.now
        THEN h || jsonb_build_object('until', greatest(${until}, n.now + (a.ttls ->> (h ->> 'token'))::bigint))
        ELSE h END)
      FROM (SELECT ${NOW} AS now OFFSET 0) AS n, ${each('l.holders')}
    ),
    forget_at = greatest(l.forget_at, ${forget(`${NOW} + a.longest`, 'a.longest', '$4')})
  FROM asked AS a, locked
  WHERE l.key = a.key AND locked.key = l.key
    AND EXISTS (SELECT FROM ${each('l.holders')} WHERE a.ttls ? (h ->> 'token') AND ${until} > ${NOW})
  RETURNING l.key, l.holders
)
SELECT ${NOW}::text AS now, array_to_string(array_agg(
  CASE WHEN ${mine(`(SELECT holders FROM renewed AS r WHERE r.key = a.key)`, 'a.token', NOW)} IS NULL
    THEN 'gone' ELSE 'renewed' END ORDER BY a.place), ',') AS outcomes
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (key, token, place)`,

    /**
     * $1 key, $2 token, $3 keepFor µs, $4 once, $5 remember µs, $6 watch lock, $7 retention µs.
     *
     * Tells only if somebody watches, because a commit that tells takes a lock of the whole database: who watches holds
     * the watch lock shared. To try it holds it until the commit, so that who begins to watch meanwhile waits for
     * that, and finds the key free when it looks then.
     */
    release: `
WITH freed AS (
  UPDATE ${leases} AS l
  SET holders = coalesce((
      SELECT jsonb_agg(CASE WHEN h ->> 'token' = $2::text
        THEN h || jsonb_build_object('token', NULL, 'until', n.now + $3::bigint) ELSE h END)
      FROM (SELECT ${NOW} AS now OFFSET 0) AS n, ${each('l.holders')}
      WHERE ${until} > n.now AND (h ->> 'token' IS DISTINCT FROM $2::text OR $3::bigint > 0)
    ), '[]'),
    forget_at = greatest(l.forget_at, ${forget(`${NOW} + $3::bigint`, '0', '$7')})
  WHERE l.key = $1::text AND ${mine('l.holders', '$2::text', NOW)} IS NOT NULL
  RETURNING l.key
), marked AS (
  INSERT INTO ${done} AS d (key, once, until)
  SELECT key, $4::text, ${NOW} + $5::bigint FROM freed WHERE $4::text IS NOT NULL
  ON CONFLICT (key, once) DO UPDATE SET until = greatest(d.until, excluded.until)
), told AS MATERIALIZED (
  SELECT CASE WHEN $3::bigint <= 0 AND NOT pg_try_advisory_xact_lock($6::bigint)
    THEN pg_notify('${CHANNEL}', $6::bigint::text)::text END AS told
  FROM freed
)
SELECT (SELECT count(*) FROM freed)::text AS freed, (SELECT count(told) FROM told)::text AS told, ${NOW}::text AS now`,

    /** $1 key. */
    inspect: `
SELECT key, holders::text AS holders, ${NOW}::text AS now FROM ${leases} WHERE key = $1::text`,

    /** $1 beginning, $2 the last key of the page before. Keys are sorted by their bytes: a beginning is a range. */
    list: `
SELECT key, holders::text AS holders, ${NOW}::text AS now FROM ${leases}
WHERE key >= $1::text AND starts_with(key, $1::text) AND ($2::text IS NULL OR key > $2::text)
ORDER BY key LIMIT 500`,

    /**
     * $1 how many. What nobody holds, and whose fence need not be remembered any more. A claim that comes at the same
     * time waits for it and begins a new row, whose fence is the time: higher, because the retention has passed.
     */
    sweep: `
WITH old AS (
  SELECT key FROM ${leases} WHERE forget_at < ${NOW} LIMIT $1::int FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${leases} AS l USING old WHERE l.key = old.key AND l.forget_at < ${NOW} RETURNING 1
), past AS (
  SELECT key, once FROM ${done} WHERE until < ${NOW} LIMIT $1::int FOR UPDATE SKIP LOCKED
), forgotten AS (
  DELETE FROM ${done} AS d USING past WHERE d.key = past.key AND d.once = past.once AND d.until < ${NOW} RETURNING 1
)
SELECT greatest((SELECT count(*) FROM gone), (SELECT count(*) FROM forgotten))::text AS most`,

    /** $1 leases as JSON: [{ key, fence }]. How many of them are held at this moment. */
    held: `
SELECT current_setting('nestjs_lease.guard', true) AS guard,
  current_setting('transaction_isolation') AS isolation,
  (SELECT coalesce(string_agg(a.place::text, ',' ORDER BY a.place), '')
    FROM jsonb_array_elements(($1::text)::jsonb) WITH ORDINALITY AS a (lease, place)
    JOIN ${leases} AS l ON l.key = a.lease ->> 'key'
    WHERE EXISTS (SELECT FROM ${each('l.holders')}
      WHERE h ->> 'token' IS NOT NULL AND h ->> 'fence' = a.lease ->> 'fence' AND ${until} > ${NOW})) AS held`,
  };
}

/** $1 lock numbers as JSON, $2 a word that only this transaction knows: gone with it, and so unknown elsewhere. */
export const GUARD = `
SELECT set_config('nestjs_lease.guard', $2::text, true) AS guard,
  (SELECT count(pg_advisory_xact_lock_shared(id::bigint)::text)
    FROM jsonb_array_elements_text(($1::text)::jsonb) AS e (id))::int AS locks`;

/** Always fails, and says why in the server's log: a transaction in which a statement failed cannot commit. */
export const SPOIL = `SELECT 'nestjs-lease: the lease is lost, this transaction must not commit'::integer`;
