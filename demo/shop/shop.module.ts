import { Module, type Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LeaseModule, type LeaseStore } from 'nestjs-lease';
import { Books } from './books.js';
import { OrdersController } from './orders.controller.js';
import { Outbox } from './outbox.js';
import { INSTANCE, World } from './world.js';

export interface ShopOptions {
  readonly instance: string;
  readonly store: LeaseStore;
  readonly namespace: string;
  readonly world: World;
}

/** The small application of which three instances run. */
export function createShopModule({ instance, store, namespace, world }: ShopOptions): Type {
  @Module({
    imports: [
      ScheduleModule.forRoot(),
      LeaseModule.forRoot({ store, namespace, instance, ttl: '2s' }),
    ],
    controllers: [OrdersController],
    providers: [
      Books,
      Outbox,
      { provide: INSTANCE, useValue: instance },
      { provide: World, useValue: world },
    ],
  })
  class ShopModule {}
  return ShopModule;
}
