import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis, type RedisServer } from './redis-server.js';
import { ask } from './redlock-nodes.js';
import { until } from './until.js';

/** A real server whose clock can be set; its monotonic clock runs on, as in a machine whose time is corrected. */
export interface SteppedRedis {
  readonly server: RedisServer;
  /** Sets its clock so many seconds ahead of ours, or behind. Resolves when the server shows it. */
  setClock(seconds: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startSteppedRedis(): Promise<SteppedRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-lease-clock-'));
  const file = join(folder, 'offset');
  const write = (seconds: number): void =>
    writeFileSync(file, `${seconds < 0 ? '' : '+'}${seconds}s\n`);
  write(0);
  const server = await startRedis({
    env: {
      // Without the second, before the rest of it, Debian’s redis-server does not start.
      LD_PRELOAD: `${process.env['LIBFAKETIME'] ?? 'libfaketime.so.1'} libc.so.6`,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  return {
    server,
    setClock: async (seconds) => {
      write(seconds);
      const isSet = async (): Promise<boolean> => {
        const [shown] = (await ask(server, (client) => client.time())).map(Number);
        return Math.abs(shown! - Date.now() / 1_000 - seconds) < 2;
      };
      await until(isSet, { what: `a clock of redis-server that is ${seconds} s ahead` });
    },
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
