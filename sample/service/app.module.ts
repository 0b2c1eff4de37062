import { Logger, Module, type Type } from '@nestjs/common';
import { LeaseModule, type LeaseStore } from 'nestjs-lease';
import { Reports } from './reports.js';

export function createAppModule(store: LeaseStore, instance: string): Type {
  @Module({
    imports: [LeaseModule.forRoot({ store, instance })],
    providers: [Reports, { provide: Logger, useValue: new Logger(instance) }],
  })
  class AppModule {}
  return AppModule;
}
