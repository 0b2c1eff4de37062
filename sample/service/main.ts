// LeaseService, without decorators: wait for a turn, stop when the lease is lost, give it back by leaving the block.
//
//   await leases.run(`report:${id}`, (lease) => build(id, lease.signal), { wait: '5s' });
//
//   await using lease = await leases.acquire(`archive:${id}`, { wait: '5s' });
//
// npm run sample -- service
import { startInstances } from '../start-instances.js';
import { createAppModule } from './app.module.js';
import { Reports } from './reports.js';

const apps = await startInstances(createAppModule, ['one', 'two']);

// Both want the same report at once: the second waits for its turn.
await Promise.all(apps.map((app) => app.get(Reports).build('42')));
await Promise.all(apps.map((app) => app.get(Reports).archive('42')));
