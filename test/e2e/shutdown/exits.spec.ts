import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { transformFile } from '@swc/core';
import { RedisLeaseStore } from 'nestjs-lease/redis';
import { LEFT_TO_TTL, SHUTTING_DOWN } from '../../../lib/lease.messages.js';
import { compileLib, type CompiledLib } from '../../support/compiled-lib.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { until } from '../../support/until.js';
import type { WorkerOptions } from './worker.js';

interface Line {
  readonly what: string;
  readonly reason?: string;
  readonly isHeld?: boolean;
  readonly url?: string;
}

let lib: CompiledLib;
let redis: RedisServer;

beforeAll(async () => {
  [lib, redis] = await Promise.all([compileLib(), startRedis()]);
  const here = dirname(fileURLToPath(import.meta.url));
  const { code } = await transformFile(join(here, 'worker.ts'), {
    swcrc: false,
    module: { type: 'es6' },
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      keepClassNames: true,
    },
  });
  await writeFile(join(lib.dir, 'worker.js'), code);
  // So that the worker imports the library by its name.
  const exports = { '.': './index.js', './redis': './stores/redis/index.js' };
  const manifest = { name: 'nestjs-lease', type: 'module', exports };
  await writeFile(join(lib.dir, 'package.json'), JSON.stringify(manifest));
});
afterAll(async () => {
  await Promise.all([lib.remove(), redis.stop()]);
});

const workers = new Set<Worker>();
afterEach(async () => {
  await Promise.all([...workers].map((worker) => worker.kill()));
  workers.clear();
});

/** On a busy machine the package `cron` says that it comes late. */
const withoutLateness = (said: string): string =>
  said.replaceAll(/^\[Cron\] Missed execution deadline .*\n/gm, '');

class Worker {
  readonly lines: Line[] = [];
  errors = '';
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown[]>;

  constructor(options: WorkerOptions) {
    const script = join(lib.dir, 'worker.js');
    // Not the options of the test's own process.
    const env = { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1' };
    const child = spawn(process.execPath, [script, JSON.stringify(options)], { env });
    this.#child = child;
    this.#exit = once(child, 'exit');
    createInterface(child.stdout).on('line', (line) => {
      if (line.startsWith('{')) this.lines.push(JSON.parse(line) as Line);
      else this.errors += `${line}\n`;
    });
    child.stderr.on('data', (chunk) => (this.errors += withoutLateness(String(chunk))));
    workers.add(this);
  }

  get said(): string[] {
    return this.lines.map(({ what }) => what);
  }

  line(what: string): Line | undefined {
    return this.lines.find((line) => line.what === what);
  }

  /** Resolves when it said so. */
  hears(what: string): Promise<Line> {
    return until(() => this.line(what), { within: 10_000 });
  }

  /** Makes it call app.close(). */
  close(): void {
    this.#child.stdin!.write('close\n');
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** How it ended: by itself with a code, or by a signal. */
  async ended(): Promise<unknown> {
    const [code, signal] = await this.#exit;
    return code ?? signal;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }
}

const kinds = ['http', 'context'] as const;

describe.each(kinds)('a process with an application of the kind %s', (kind) => {
  it('on Redis ends by itself after app.close(): no timer, socket or listener is left', async () => {
    const worker = new Worker({ kind, redis: redis.url });
    await worker.hears('ready');
    worker.close();
    expect(await worker.ended()).toBe(0);
    expect(worker.line('deposed')).toMatchObject({ reason: 'shutdown' });
    expect(worker.said.slice(-2)).toEqual(['hook of another', 'closed']);
    expect(worker.errors).toBe('');
  });

  it('ends by itself after app.close() on the embedded store too', async () => {
    const worker = new Worker({ kind });
    await worker.hears('ready');
    worker.close();
    expect(await worker.ended()).toBe(0);
  });

  it('lets a handler finish when SIGTERM comes, and gives everything back', async () => {
    const worker = new Worker({ kind, redis: redis.url, work: 'brief' });
    const { url } = await worker.hears('ready');
    const answer = url === undefined ? undefined : fetch(url, { headers: { connection: 'close' } });
    await worker.hears('work begins');
    worker.terminate();
    expect(await worker.ended()).toBe('SIGTERM');
    expect(worker.line('work ends')).toMatchObject({ isHeld: true });
    expect(worker.said).not.toContain('work aborted');
    expect(await (await answer)?.text()).toBe(url === undefined ? undefined : 'done');

    const store = new RedisLeaseStore(redis.url);
    const left: string[] = [];
    // What a tick of cron leaves is a mark that it was done, not a lease.
    for await (const { key, holders } of store.list()) if (holders.length > 0) left.push(key);
    await store.close();
    expect(left).toEqual([]);
  });

  it('tells a handler to stop when SIGTERM came and the grace is over', async () => {
    const worker = new Worker({ kind, redis: redis.url, work: 'obedient', shutdownGrace: 200 });
    const { url } = await worker.hears('ready');
    const answer = url === undefined ? undefined : fetch(url, { headers: { connection: 'close' } });
    await worker.hears('work begins');
    worker.terminate();
    expect(await worker.ended()).toBe('SIGTERM');
    expect(worker.line('work aborted')).toMatchObject({ reason: SHUTTING_DOWN() });
    expect(worker.line('work ends')).toMatchObject({ isHeld: true });
    expect((await answer)?.status).toBe(url === undefined ? undefined : 200);
  });
});

describe('a process whose handler never stops', () => {
  it('ends all the same after app.close(), with the hooks of others called', async () => {
    // Without a schedule: nothing but the shutdown itself keeps this process alive until it is over.
    const worker = new Worker({
      kind: 'context',
      work: 'deaf',
      shutdownGrace: 100,
      schedule: false,
    });
    await worker.hears('ready');
    worker.close();
    expect(await worker.ended()).toBe(0);
    expect(worker.said).toContain('work aborted');
    expect(worker.said.slice(-2)).toEqual(['hook of another', 'closed']);
    expect(worker.errors).toContain(LEFT_TO_TTL(['work']));
  });
});
