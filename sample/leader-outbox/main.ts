// One instance leads and dispatches the outbox; when it goes, another takes over.
//
//   @Interval(500)
//   @LeaderOnly('outbox')
//   async dispatch(@CurrentLease() lease: Lease) { … }
//
// npm run sample -- leader-outbox
import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { ElectionService } from 'nestjs-lease';
import { startInstances } from '../start-instances.js';
import { createAppModule } from './app.module.js';

const apps = await startInstances(createAppModule, ['one', 'two', 'three']);

// Leave it a moment of leading, then see it hand over.
await setTimeout(4_000);
const leader = apps.find((app) => app.get(ElectionService).leadership('outbox').isLeader);
if (leader) {
  new Logger('sample').log('the leader shuts down');
  await leader.close();
}
