import { and, eq, lte } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { bigint, boolean, pgTable, serial, text } from 'drizzle-orm/pg-core';
import { Pool } from 'pg';
import { describeSqlLibrary } from './sql-library.js';

const ledger = pgTable('ledger', {
  month: text().primaryKey(),
  closed: boolean().notNull(),
  fence: bigint({ mode: 'number' }).notNull(),
});
const entries = pgTable('entries', {
  at: serial().primaryKey(),
  month: text().notNull(),
  fence: bigint({ mode: 'number' }).notNull(),
});

type Transaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0];

describeSqlLibrary<Transaction>('Drizzle', (url) => {
  const pool = new Pool({ connectionString: url });
  const db = drizzle(pool);
  return {
    outside: db,
    transaction: (work) => db.transaction(work),
    enter: (tx, month, fence) => tx.insert(entries).values({ month, fence }),
    close: async (tx, month, column) => {
      const { rowCount } = await tx
        .update(ledger)
        .set({ closed: true, fence: column.fence })
        .where(and(eq(ledger.month, month), lte(ledger.fence, column.fence)));
      return rowCount;
    },
    end: () => pool.end(),
  };
});
