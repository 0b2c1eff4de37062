// An owner that stands still between its last check and its write, for longer than its ttl; meanwhile the next one writes.
// What is in the ledger then, without a gate and with one:
//
//   lease.assertHeld();                                  // right, and then time passes
//   await gate.admit('ledger:2026-11', lease.fence);     // refuses whoever is not the newest
//
// npm run sample -- paused-owner
import { Logger } from '@nestjs/common';
import { startInstances } from '../start-instances.js';
import { createAppModule } from './app.module.js';
import { Books } from './books.js';
import { Ledger } from './ledger.js';

const [a, b] = await startInstances(createAppModule, ['A', 'B']);
const logger = new Logger('ledger');

// Stands for SIGSTOP, a collection of garbage, a machine that is moved: A goes on when B has written.
await a!.get(Books).close('2026-11', 'old figures of A', async () => {
  logger.log('A is stopped for longer than its ttl');
  await b!.get(Books).close('2026-11', 'new figures of B');
  logger.log('A goes on');
});
for (const way of ['without a gate', 'with a gate']) {
  logger.log(`${way}: "${a!.get(Ledger).read(`2026-11, ${way}`)}"`);
}
