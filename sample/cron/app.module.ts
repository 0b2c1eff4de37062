import { Logger, Module, type Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LeaseModule, type LeaseStore } from 'nestjs-lease';
import { Books } from './books.js';

export function createAppModule(store: LeaseStore, instance: string): Type {
  @Module({
    imports: [ScheduleModule.forRoot(), LeaseModule.forRoot({ store, instance })],
    providers: [Books, { provide: Logger, useValue: new Logger(instance) }],
  })
  class AppModule {}
  return AppModule;
}
