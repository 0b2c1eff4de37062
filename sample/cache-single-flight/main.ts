// Many requests miss the cache at once; one of them rebuilds it, the others wait and get what it built.
//
//   return cache.get(id) ?? leases.run(`prices:${id}`, async () => cache.get(id) ?? rebuild(id), { wait: '10s' });
//
// npm run sample -- cache-single-flight
import { Logger } from '@nestjs/common';
import { startInstances } from '../start-instances.js';
import { createAppModule } from './app.module.js';

const apps = await startInstances(createAppModule, ['one', 'two']);
const urls = await Promise.all(apps.map((app) => app.getUrl()));

const answers = await Promise.all(
  Array.from({ length: 20 }, async (_, at) => {
    const response = await fetch(`${urls[at % urls.length]}/prices/eur`, {
      headers: { connection: 'close' },
    });
    return response.text();
  }),
);
new Logger('client').log(`20 requests, answers: ${[...new Set(answers)].join(' and ')}`);
