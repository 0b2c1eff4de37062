// At most three exports of a tenant at once, in the whole fleet; the others wait their turn.
//
//   @WithLease((tenant: string) => `exports:${tenant}`, { permits: 3, wait: '1m' })
//   async export(tenant: string, file: string) { … }
//
// npm run sample -- semaphore
import { startInstances } from '../start-instances.js';
import { createAppModule } from './app.module.js';
import { Exports } from './exports.js';

const apps = await startInstances(createAppModule, ['one', 'two']);

const files = [
  ['jan.csv', 'feb.csv', 'mar.csv', 'apr.csv'],
  ['may.csv', 'jun.csv', 'jul.csv', 'aug.csv'],
];
await Promise.all(
  apps.flatMap((app, at) => files[at]!.map((file) => app.get(Exports).export('acme', file))),
);
