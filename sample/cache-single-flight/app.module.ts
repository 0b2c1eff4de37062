import { Logger, Module, type Type } from '@nestjs/common';
import { LeaseModule, type LeaseStore } from 'nestjs-lease';
import { PriceCache } from './price-cache.js';
import { PricesController } from './prices.controller.js';
import { Prices } from './prices.js';

/** Stands for the cache that all instances share, such as Redis. */
const sharedCache = new PriceCache();

export function createAppModule(
  store: LeaseStore,
  instance: string,
  cache: PriceCache = sharedCache,
): Type {
  @Module({
    imports: [LeaseModule.forRoot({ store, instance })],
    controllers: [PricesController],
    providers: [
      Prices,
      { provide: PriceCache, useValue: cache },
      { provide: Logger, useValue: new Logger(instance) },
    ],
  })
  class AppModule {}
  return AppModule;
}
