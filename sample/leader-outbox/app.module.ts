import { Logger, Module, type Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LeaseModule, type LeaseStore } from 'nestjs-lease';
import { OutboxTable } from './outbox-table.js';
import { Outbox } from './outbox.js';

/** Stands for a table of the database that all instances share. */
const sharedTable = new OutboxTable();

export function createAppModule(
  store: LeaseStore,
  instance: string,
  table: OutboxTable = sharedTable,
): Type {
  @Module({
    imports: [
      ScheduleModule.forRoot(),
      // A leader that crashes is replaced after this ttl; one that shuts down hands over at once.
      LeaseModule.forRoot({ store, instance, election: { ttl: '3s' } }),
    ],
    providers: [
      Outbox,
      { provide: OutboxTable, useValue: table },
      { provide: Logger, useValue: new Logger(instance) },
    ],
  })
  class AppModule {}
  return AppModule;
}
