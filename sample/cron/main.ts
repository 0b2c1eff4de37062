// A cron job that runs once per tick, however many instances fire it:
//
//   @Cron(CronExpression.EVERY_SECOND)
//   @WithLease()
//   async close(@Fence() fence: number) { … }
//
// npm run sample -- cron
import { startInstances } from '../start-instances.js';
import { createAppModule } from './app.module.js';

await startInstances(createAppModule, ['one', 'two', 'three']);
