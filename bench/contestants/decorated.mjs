import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { importLibrary } from '../harness/library.mjs';

const { LeaseModule, LeaseService, MemoryLeaseStore, WithLease } = await importLibrary('index.js');

/** What the compiler would write for decorators on a method of this signature. */
function decorate(Class, method, decorators) {
  const described = Object.getOwnPropertyDescriptor(Class.prototype, method);
  Reflect.defineMetadata('design:paramtypes', [String], Class.prototype, method);
  Reflect.defineMetadata('design:returntype', Promise, Class.prototype, method);
  const decorated = Reflect.decorate(decorators, Class.prototype, method, described);
  Object.defineProperty(Class.prototype, method, decorated ?? described);
}

/** The same method with and without a lease, in a provider of a Nest application, on the memory store. */
export async function open() {
  class Orders {
    async plain(id) {
      return id;
    }
    async leased(id) {
      return id;
    }
    async leasedByArgument(id) {
      return id;
    }
  }
  decorate(Orders, 'leased', [WithLease('orders')]);
  decorate(Orders, 'leasedByArgument', [WithLease((id) => `order:${id}`)]);
  Injectable()(Orders);

  class BenchModule {}
  Module({
    imports: [LeaseModule.forRoot({ store: new MemoryLeaseStore() })],
    providers: [Orders],
  })(BenchModule);
  const application = await NestFactory.createApplicationContext(BenchModule, { logger: false });
  const orders = application.get(Orders);
  const leases = application.get(LeaseService);
  return {
    ways: {
      plain: () => orders.plain('42'),
      leased: () => orders.leased('42'),
      leasedByArgument: () => orders.leasedByArgument('42'),
      run: () => leases.run('order:42', () => orders.plain('42')),
    },
  };
}
