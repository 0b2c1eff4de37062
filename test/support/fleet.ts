import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { CompiledLib } from './compiled-lib.js';
import { until } from './until.js';

const script = join(dirname(fileURLToPath(import.meta.url)), 'fleet-worker.mjs');

/** How to make a store in another process: what is imported of the compiled library, and what it is given. */
export interface StoreElsewhere {
  readonly module: string;
  readonly export: string;
  readonly args: readonly unknown[];
}

/** A turn with the key, in µs of the machine's monotonic clock. */
export interface Turn {
  readonly worker: number;
  readonly fence: number;
  readonly from: number;
  readonly until: number;
  readonly isLost: boolean;
}

/** Two turns that were trusted at the same time, and for how many ms. */
export interface Overlap {
  readonly fences: readonly [number, number];
  readonly ms: number;
}

/** Processes that take turns with one key, see fleet-worker.mjs. */
export class Fleet {
  readonly turns: Turn[] = [];
  readonly refusals = new Map<string, number>();
  readonly unhandled: string[] = [];
  #ended = 0;
  #errors = '';

  private constructor(private readonly workers: readonly ChildProcess[]) {
    for (const [worker, child] of workers.entries()) {
      createInterface({ input: child.stdout! }).on('line', (line) =>
        this.#hear(worker, JSON.parse(line) as Record<string, unknown>),
      );
      child.stderr!.on('data', (text) => (this.#errors += String(text)));
    }
  }

  static start(
    lib: CompiledLib,
    store: StoreElsewhere,
    { key = 'turns', ttl, size = 3 }: { key?: string; ttl: number; size?: number },
  ): Fleet {
    const args = [lib.dir, JSON.stringify(store), key, `${ttl}`];
    const options = {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'] as ['ignore', 'pipe', 'pipe', 'ipc'],
    };
    return new Fleet(Array.from({ length: size }, () => fork(script, args, options)));
  }

  /** Until so many more turns were taken, by all of them together. */
  async more(turns: number, timeout = 60_000): Promise<void> {
    const enough = this.turns.length + turns;
    await until(() => this.turns.length >= enough || this.#errors !== '', { timeout });
    if (this.#errors !== '') throw new Error(this.#errors);
  }

  /** Lets everybody end its turn. */
  async end(): Promise<void> {
    for (const worker of this.workers) if (worker.connected) worker.send('over');
    await until(() => this.#ended === this.workers.length, { timeout: 20_000 });
  }

  async kill(): Promise<void> {
    for (const worker of this.workers) {
      if (worker.exitCode !== null || worker.signalCode !== null) continue;
      worker.kill('SIGKILL');
      await once(worker, 'exit');
    }
  }

  get errors(): string {
    return this.#errors;
  }

  /** Turns of different grants that were trusted at the same time. */
  get overlaps(): readonly Overlap[] {
    const inOrder = this.turns.toSorted((a, b) => a.from - b.from);
    const overlaps: Overlap[] = [];
    for (const [i, turn] of inOrder.entries()) {
      for (const other of inOrder.slice(i + 1)) {
        if (other.from >= turn.until) break;
        const ms = (Math.min(turn.until, other.until) - other.from) / 1e3;
        overlaps.push({ fences: [turn.fence, other.fence], ms });
      }
    }
    return overlaps;
  }

  /** Fences that are not higher than that of the turn before. */
  get disorder(): readonly (readonly [number, number])[] {
    const fences = this.turns.toSorted((a, b) => a.from - b.from).map(({ fence }) => fence);
    return fences.flatMap((fence, i) =>
      i > 0 && fence <= fences[i - 1]! ? [[fences[i - 1]!, fence] as const] : [],
    );
  }

  #hear(worker: number, line: Record<string, unknown>): void {
    if (typeof line['fence'] === 'number') this.turns.push({ worker, ...line } as unknown as Turn);
    if (typeof line['unhandled'] === 'string') this.unhandled.push(line['unhandled']);
    if (line['ended'] === true) this.#ended++;
    if (typeof line['refused'] === 'string') {
      this.refusals.set(line['refused'], (this.refusals.get(line['refused']) ?? 0) + 1);
    }
  }
}
