import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { CompiledLib } from './compiled-lib.js';
import { until } from './until.js';

const script = join(dirname(fileURLToPath(import.meta.url)), 'blocking-holder.mjs');

export interface HolderSaid {
  readonly said: string;
  readonly fence?: number;
  readonly isHeld?: boolean;
  readonly reason?: string;
  readonly message?: string;
}

/** A store as another process makes it. */
export interface StorePlan {
  /** In the library. */
  readonly file: string;
  /** Of the class. */
  readonly name: string;
  readonly args: readonly unknown[];
}

export interface BlockingHolderOptions {
  readonly lib: CompiledLib;
  readonly store: StorePlan;
  readonly key: string;
  readonly ttl: number;
  /** Renews in a thread. */
  readonly hungAfter?: number;
  /** Where the thread's store comes from. */
  readonly threadModule?: string;
}

export const redisPlan = (url: string): StorePlan => ({
  file: 'stores/redis/redis-lease-store.js',
  name: 'RedisLeaseStore',
  args: [url],
});

/** Another process that holds a lease and can block its event loop, see blocking-holder.mjs. */
export class BlockingHolder {
  readonly said: HolderSaid[] = [];
  readonly #child: ChildProcess;
  errors = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    createInterface({ input: child.stdout! }).on('line', (line) =>
      this.said.push(JSON.parse(line) as HolderSaid),
    );
    child.stderr!.on('data', (text) => (this.errors += String(text)));
    child.stdin!.on('error', () => undefined);
  }

  /** Resolves when it holds the key. */
  static async start(options: BlockingHolderOptions): Promise<BlockingHolder> {
    const { lib, store, key, ttl, hungAfter, threadModule } = options;
    const more = [hungAfter, threadModule].filter((arg) => arg !== undefined).map(String);
    const args = [script, lib.dir, JSON.stringify(store), key, `${ttl}`, ...more];
    const holder = new BlockingHolder(spawn(process.execPath, args));
    await until(() => holder.heard('acquired') || holder.hasExited, { timeout: 10_000 });
    if (holder.hasExited) throw new Error(`The holder ended: ${holder.errors}`);
    return holder;
  }

  heard(word: string): HolderSaid | undefined {
    return this.said.find(({ said }) => said === word);
  }

  /** Resolves with the first time it said so. */
  hears(word: string, timeout = 10_000): Promise<HolderSaid> {
    return until(() => this.heard(word), { timeout });
  }

  get fence(): number {
    return this.heard('acquired')!.fence!;
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  tell(line: 'act' | 'release' | 'close' | `block ${number}`): void {
    this.#child.stdin!.write(`${line}\n`);
  }

  /** No more to tell it: a process that nothing holds ends by itself. */
  leave(): void {
    this.#child.stdin!.end();
  }

  /** Resolves when all of its threads stand still. */
  async freeze(): Promise<void> {
    this.#child.kill('SIGSTOP');
    while (!/^State:\sT/m.test(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'))) {
      await setTimeout(1);
    }
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    if (this.hasExited) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}
