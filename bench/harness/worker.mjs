/**
 * A process in which one library runs: it opens contestants of it and does jobs with them, as the parent says.
 * Ends with its parent.
 */
import { sentInAll } from './command-count.mjs';
import { jobs } from '../jobs/index.mjs';

const opened = new Map();
let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);
process.on('uncaughtException', () => unhandled++);
process.on('disconnect', () => process.exit());

process.on('message', async ({ id, file, options, job, params }) => {
  try {
    const contestant =
      job === 'open' || job in jobs ? await contestantOf(file, options) : undefined;
    const before = sentInAll();
    const unhandledBefore = unhandled;
    const result = job === 'open' ? {} : await jobs[job](contestant, params);
    const commands = sentInAll() - before;
    process.send({ id, result: { ...result, commands, unhandled: unhandled - unhandledBefore } });
  } catch (error) {
    process.send({ id, error: error?.stack ?? String(error) });
  }
});

function contestantOf(file, options) {
  const name = JSON.stringify([file, options]);
  if (!opened.has(name))
    opened.set(
      name,
      import(file).then(({ open }) => open(options)),
    );
  return opened.get(name);
}
