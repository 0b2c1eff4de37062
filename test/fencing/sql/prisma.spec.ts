import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient, type Prisma } from './prisma-client.js';
import { describeSqlLibrary } from './sql-library.js';

describeSqlLibrary<Prisma.TransactionClient>('Prisma', (url) => {
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ connectionString: url }),
    // It gives up by itself after two seconds, which is no time on a busy machine.
    transactionOptions: { maxWait: 15_000, timeout: 15_000 },
  });
  return {
    outside: prisma,
    transaction: (work) => prisma.$transaction(work),
    enter: (tx, month, fence) => tx.entry.create({ data: { month, fence } }),
    close: async (tx, month, column) => {
      const { count } = await tx.ledger.updateMany({
        where: { month, fence: { lte: column.fence } },
        data: { closed: true, fence: column.fence },
      });
      return count;
    },
    end: () => prisma.$disconnect(),
  };
});
