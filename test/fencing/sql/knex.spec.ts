import { knex, type Knex } from 'knex';
import { describeSqlLibrary } from './sql-library.js';

describeSqlLibrary<Knex.Transaction>('Knex', (url) => {
  const db = knex({ client: 'pg', connection: url });
  return {
    outside: db,
    transaction: (work) => db.transaction(work),
    enter: (trx, month, fence) => trx('entries').insert({ month, fence }),
    close: (trx, month, column) =>
      trx('ledger')
        .where({ month })
        .andWhere('fence', '<=', column.fence)
        .update({ closed: true, fence: column.fence }),
    end: () => db.destroy(),
  };
});
