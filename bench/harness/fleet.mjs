import { fork } from 'node:child_process';
import { join } from 'node:path';
import { benchFolder } from './library.mjs';

const children = new Set();

/** A child process for one library; see worker.mjs. */
export class Worker {
  #child;
  #calls = new Map();
  #lastId = 0;
  #said = '';

  constructor() {
    this.#child = fork(join(benchFolder, 'harness', 'worker.mjs'), {
      serialization: 'advanced',
      execArgv: ['--expose-gc', '--no-warnings'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // Ctrl-C is for the parent, which ends its children.
      detached: true,
    });
    children.add(this.#child);
    this.#child.stderr.on('data', (text) => (this.#said = `${this.#said}${text}`.slice(-2_000)));
    this.#child.on('message', ({ id, result, error }) => {
      const { resolve, reject } = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(error));
    });
    this.#child.once('exit', (code, signal) => {
      children.delete(this.#child);
      const why = new Error(`A worker ended early (${signal ?? code}).\n${this.#said}`);
      for (const { reject } of this.#calls.values()) reject(why);
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** @param {{ file: string, options: object }} contestant */
  do(job, contestant, params = {}) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      const { file, options } = contestant;
      this.#child.send({ id, file, options, job, params });
    });
  }

  stop() {
    this.#calls.clear();
    this.#child.kill('SIGKILL');
  }
}

export function stopAllWorkers() {
  for (const child of children) child.kill('SIGKILL');
}

/**
 * The processes of a scenario: `size` of them for each library, shared by its contestants and by nobody else, so
 * that no contestant runs on code that the compiler has fitted to another.
 */
export class Fleet {
  #byFile = new Map();

  /** @param {readonly { file: string, options: object }[]} contestants */
  static async start(contestants, size = 1) {
    const fleet = new Fleet();
    for (const { file } of contestants) {
      if (fleet.#byFile.has(file)) continue;
      fleet.#byFile.set(
        file,
        Array.from({ length: size }, () => new Worker()),
      );
    }
    await Promise.all(
      contestants.flatMap((contestant) =>
        fleet.of(contestant).map((worker) => worker.do('open', contestant)),
      ),
    );
    return fleet;
  }

  /** @returns {Worker[]} */
  of({ file }) {
    return this.#byFile.get(file);
  }

  get pids() {
    return [...this.#byFile.values()].flat().map(({ pid }) => pid);
  }

  stop() {
    for (const worker of [...this.#byFile.values()].flat()) worker.stop();
  }
}
