import { Logger, Module, type Type } from '@nestjs/common';
import { LeaseModule, type LeaseStore } from 'nestjs-lease';
import { Books } from './books.js';
import { Ledger } from './ledger.js';

const sharedLedger = new Ledger();

export function createAppModule(
  store: LeaseStore,
  instance: string,
  ledger: Ledger = sharedLedger,
): Type {
  @Module({
    imports: [LeaseModule.forRoot({ store, instance })],
    providers: [
      Books,
      { provide: Ledger, useValue: ledger },
      { provide: Logger, useValue: new Logger(instance) },
    ],
  })
  class AppModule {}
  return AppModule;
}
