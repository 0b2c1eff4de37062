import { MikroORM, defineEntity, p, type SqlEntityManager } from '@mikro-orm/postgresql';
import { describeSqlLibrary } from './sql-library.js';

const Ledger = defineEntity({
  name: 'Ledger',
  tableName: 'ledger',
  properties: {
    month: p.text().primary(),
    closed: p.boolean(),
    fence: p.bigint('number'),
  },
});
const Entry = defineEntity({
  name: 'Entry',
  tableName: 'entries',
  properties: {
    at: p.integer().primary().autoincrement(),
    month: p.text(),
    fence: p.bigint('number'),
  },
});

describeSqlLibrary<SqlEntityManager>('MikroORM', async (url) => {
  const orm = await MikroORM.init({ clientUrl: url, entities: [Ledger, Entry] });
  return {
    outside: orm.em.fork(),
    transaction: (work) => orm.em.fork().transactional(work),
    enter: (em, month, fence) => em.insert(Entry, { month, fence }),
    close: (em, month, column) =>
      em.nativeUpdate(
        Ledger,
        { month, fence: { $lte: column.fence } },
        { closed: true, fence: column.fence },
      ),
    end: () => orm.close(),
  };
});
