import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { setTimeout } from 'node:timers/promises';
import type { CompiledLib } from './compiled-lib.js';
import { until } from './until.js';

const here = dirname(fileURLToPath(import.meta.url));

export interface Said {
  readonly said: string;
  readonly fence?: number;
  readonly reason?: string;
}

/** Another process that holds a lease, see holder.mjs. */
export class HolderProcess {
  /** All it said, in order. */
  readonly said: Said[] = [];
  readonly #child: ChildProcess;
  #errors = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    createInterface({ input: child.stdout! }).on('line', (line) =>
      this.said.push(JSON.parse(line) as Said),
    );
    child.stderr!.on('data', (text) => (this.#errors += String(text)));
    child.stdin!.on('error', () => undefined);
  }

  /** Resolves when it holds the key. */
  static async start(
    lib: CompiledLib,
    url: string,
    key: string,
    ttl: number,
    script = 'holder.mjs',
  ): Promise<HolderProcess> {
    const holder = new HolderProcess(
      spawn(process.execPath, [join(here, script), lib.dir, url, key, `${ttl}`]),
    );
    await until(() => holder.said.length > 0 || holder.hasExited, { timeout: 10_000 });
    if (holder.said.length === 0) throw new Error(`The holder ended: ${holder.errors}`);
    return holder;
  }

  /** What it wrote to stderr: warnings, unhandled rejections, crashes. */
  get errors(): string {
    return this.#errors;
  }

  get fence(): number {
    return this.said[0]!.fence!;
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** In the words of its script. */
  tell(word: string): void {
    this.#child.stdin!.write(`${word}\n`);
  }

  /** No more to tell it: a process that nothing holds ends by itself. */
  leave(): void {
    this.#child.stdin!.end();
  }

  /** Resolves when it stands still. */
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
