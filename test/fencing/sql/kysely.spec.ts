import { Kysely, PostgresDialect, type Generated, type Transaction } from 'kysely';
import { Pool } from 'pg';
import { describeSqlLibrary } from './sql-library.js';

interface Tables {
  ledger: { month: string; closed: boolean; fence: number };
  entries: { at: Generated<number>; month: string; fence: number };
}

describeSqlLibrary<Transaction<Tables>>('Kysely', (url) => {
  const dialect = new PostgresDialect({ pool: new Pool({ connectionString: url }) });
  const db = new Kysely<Tables>({ dialect });
  return {
    outside: db,
    transaction: (work) => db.transaction().execute(work),
    enter: (trx, month, fence) => trx.insertInto('entries').values({ month, fence }).execute(),
    close: async (trx, month, column) => {
      const { numUpdatedRows } = await trx
        .updateTable('ledger')
        .set({ closed: true, fence: column.fence })
        .where('month', '=', month)
        .where('fence', '<=', column.fence)
        .executeTakeFirstOrThrow();
      return numUpdatedRows;
    },
    end: () => db.destroy(),
  };
});
