import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { importLibrary } from '../harness/library.mjs';
import { storeNamed } from './stores.mjs';

const { LeaseModule, LeaseService } = await importLibrary('index.js');

const FOR_AS_LONG_AS_IT_TAKES = { wait: '10m' };
const nothing = async () => {};

/** As a user would have it: a Nest application with the module, and the service it provides. */
export async function open({ style = 'by hand', store = 'redis', client = {}, ...servers }) {
  class BenchModule {}
  Module({
    imports: [LeaseModule.forRoot({ store: await storeNamed(store, { ...servers, client }) })],
  })(BenchModule);
  const application = await NestFactory.createApplicationContext(BenchModule, { logger: false });
  const leases = application.get(LeaseService);
  // The first call connects.
  await leases.run(`connected:${process.pid}:${style}`, nothing);

  // One subscription for all, as an application would have it.
  const listeners = new Set();
  leases.lost$.subscribe(() => listeners.forEach((onLost) => onLost()));

  const styles = {
    'by hand': {
      async cycle(key) {
        const lease = await leases.acquire(key);
        await lease.release();
      },
      async turn(key, work) {
        const lease = await leases.acquire(key, FOR_AS_LONG_AS_IT_TAKES);
        await work();
        await lease.release();
      },
    },
    run: {
      cycle: (key) => leases.run(key, nothing),
      turn: (key, work) => leases.run(key, work, FOR_AS_LONG_AS_IT_TAKES),
    },
  };

  return {
    ...styles[style],
    hold(key, ttl, onLost) {
      listeners.add(onLost);
      return leases.acquire(key, { ttl });
    },
    close: () => application.close(),
  };
}
