import {
  Column,
  DataSource,
  Entity,
  LessThanOrEqual,
  PrimaryColumn,
  PrimaryGeneratedColumn,
} from 'typeorm';
import type { EntityManager } from 'typeorm';
import { describeSqlLibrary } from './sql-library.js';

@Entity('ledger')
class Ledger {
  @PrimaryColumn('text') month!: string;
  @Column('boolean') closed!: boolean;
  @Column('bigint') fence!: number;
}

@Entity('entries')
class Entry {
  @PrimaryGeneratedColumn() at!: number;
  @Column('text') month!: string;
  @Column('bigint') fence!: number;
}

describeSqlLibrary<EntityManager>('TypeORM', async (url) => {
  const dataSource = new DataSource({ type: 'postgres', url, entities: [Ledger, Entry] });
  await dataSource.initialize();
  return {
    outside: dataSource.manager,
    transaction: (work) => dataSource.transaction(work),
    enter: (manager, month, fence) => manager.insert(Entry, { month, fence }),
    close: async (manager, month, column) => {
      const { affected } = await manager
        .createQueryBuilder()
        .update(Ledger)
        .set({ closed: true, fence: column.fence })
        .where({ month, fence: LessThanOrEqual(column.fence) })
        .execute();
      return affected;
    },
    end: () => dataSource.destroy(),
  };
});
