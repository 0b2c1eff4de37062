import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startRedis } from '../../support/redis-server.js';

const script = join(import.meta.dirname, '../../../demo/run.mjs');
// It is about 20 seconds of things to see.
const TIMEOUT = 90_000;

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

/** Runs the demo to its own end, as `npm run demo` does, with its output in a pipe. */
async function runDemo(redisUrl?: string): Promise<{ code: number; lines: string[] }> {
  const { REDIS_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [script], {
    env: { ...env, ...(redisUrl && { REDIS_URL: redisUrl }) },
  });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const [code] = (await once(child, 'close')) as [number];
  return { code, lines: output.split('\n') };
}

async function keysForEver(redisUrl: string): Promise<string[]> {
  const client = new Redis(redisUrl);
  try {
    const keys = await client.keys('*');
    const ttls = await Promise.all(keys.map((key) => client.pttl(key)));
    return keys.filter((_, at) => ttls[at] === -1);
  } finally {
    client.disconnect();
  }
}

const PROMISES = [
  /^✓ {2}\d+ ticks, \d+ firings, \d+ runs: once per tick\.$/,
  /^✓ {2}\w+ refused with 409 LEASE_HELD/,
  /^✓ {2}Retry-After told the client when to come back/,
  /^✓ {2}\w+ leads in place of \w+\.$/,
  /^✓ {2}Its fence is higher/,
  /^✓ {2}\w+ was told \d+ ms after its last renewal\.$/,
  /^✓ {2}\w+ had the key \d+ ms after it/,
  /^✓ {2}The storage threw StaleFenceException\.$/,
  /^✓ {2}All 5 scenes happened as claimed/,
];

function expectShown({ code, lines }: { code: number; lines: string[] }): void {
  const missing = PROMISES.filter((promise) => !lines.some((line) => promise.test(line)));
  expect({ code, missing, failed: lines.filter((line) => line.includes('✗  ')) }).toEqual({
    code: 0,
    missing: [],
    failed: [],
  });
}

describe('npm run demo', () => {
  it(
    'shows all of its scenes without a server, in 80 plain columns',
    async () => {
      const shown = await runDemo();

      expectShown(shown);
      expect(shown.lines.filter((line) => line.length > 80 || line.includes('\u001B'))).toEqual([]);
    },
    TIMEOUT,
  );

  it(
    'shows the same on Redis, and leaves nothing there for ever',
    async () => {
      const redis = await startRedis();
      try {
        expectShown(await runDemo(redis.url));
        expect(await keysForEver(redis.url)).toEqual([]);
      } finally {
        await redis.stop();
      }
    },
    TIMEOUT,
  );

  it('ends with 1 when the Redis it was told to use does not answer', async () => {
    const redis = await startRedis();
    await redis.stop();

    const { code, lines } = await runDemo(redis.url);

    expect(code).toBe(1);
    expect(lines.filter((line) => line.startsWith('✗'))).toEqual([
      expect.stringContaining('The Redis of REDIS_URL answers.'),
    ]);
  });
});
