import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { setTimeout } from 'node:timers/promises';
import { until } from './until.js';

const here = dirname(fileURLToPath(import.meta.url));

/** Another process, which is told what to do by lines and says what came of it by lines of JSON. */
export class TalkingProcess<Said = unknown> {
  /** All it said, in order. */
  readonly said: Said[] = [];
  readonly #child: ChildProcess;
  #errors = '';

  /** @param script - in this folder */
  protected constructor(script: string, args: readonly string[]) {
    this.#child = spawn(process.execPath, [join(here, script), ...args]);
    createInterface({ input: this.#child.stdout! }).on('line', (line) =>
      this.said.push(JSON.parse(line) as Said),
    );
    this.#child.stderr!.on('data', (text) => (this.#errors += String(text)));
    this.#child.stdin!.on('error', () => undefined);
  }

  /** Resolves when it has said its first line. */
  protected async started(): Promise<this> {
    await until(() => this.said.length > 0 || this.hasExited, { timeout: 30_000 });
    if (this.said.length === 0) throw new Error(`The process ended: ${this.#errors}`);
    return this;
  }

  /** What it wrote to stderr: warnings, unhandled rejections, crashes. */
  get errors(): string {
    return this.#errors;
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
    while (!this.isFrozen) await setTimeout(1);
  }

  /** Stopped, by whomever. */
  get isFrozen(): boolean {
    return /^State:\sT/m.test(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'));
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
