import { Logger, Module, type Type } from '@nestjs/common';
import { LeaseModule, type LeaseStore } from 'nestjs-lease';
import { Exports } from './exports.js';

export function createAppModule(store: LeaseStore, instance: string): Type {
  @Module({
    imports: [LeaseModule.forRoot({ store, instance })],
    providers: [Exports, { provide: Logger, useValue: new Logger(instance) }],
  })
  class AppModule {}
  return AppModule;
}
