import { lockId } from './lock-id.js';
import { tableOf, type Table } from './table.js';

/**
 * The SQL that creates what a {@link PostgresLeaseStore} needs, for your own migrations. May be run again.
 *
 * @example
 * ```ts
 * await queryRunner.query(postgresLeaseSql('app.leases'));
 * new PostgresLeaseStore(url, { table: 'app.leases', createTable: false });
 * ```
 * @publicApi
 */
export function postgresLeaseSql(table = 'nestjs_lease'): string {
  return createSql(tableOf(table));
}

export function createSql({ leases, done }: Table): string {
  return `CREATE TABLE IF NOT EXISTS ${leases} (
  key text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  holders jsonb NOT NULL,
  forget_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS ${done} (
  key text COLLATE "C" NOT NULL,
  once text COLLATE "C" NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (key, once)
);`;
}

/** IF NOT EXISTS does not keep two who create at the same moment apart; a lock of their transactions does. */
export const createAlone = (sql: string): string =>
  `SELECT pg_advisory_xact_lock(${lockId('create', '')});\n${sql}`;
