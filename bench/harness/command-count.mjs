import { createRequire } from 'node:module';
import { join } from 'node:path';
import { libraryFolder } from './library.mjs';

/**
 * Commands that this process has sent, by name.
 *
 * Counted at the client, because the server cannot tell: its commandstats and total_commands_processed count what
 * a script calls inside like what a client sent. Every ioredis that a contestant may use is counted: ours has the
 * repository's, the peers have the benchmark's two.
 */
export const sent = new Map();

export const sentInAll = () => {
  let all = 0;
  for (const count of sent.values()) all += count;
  return all;
};

const here = createRequire(import.meta.url);
const library = createRequire(join(libraryFolder, 'stores', 'redis', 'index.js'));
const clients = new Set([here('ioredis'), here('ioredis5'), library('ioredis')]);

for (const { Redis } of clients) {
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function (command, stream) {
    sent.set(command.name, (sent.get(command.name) ?? 0) + 1);
    return sendCommand.call(this, command, stream);
  };
}
