import type { CompiledLib } from './compiled-lib.js';
import { TalkingProcess } from './talking-process.js';
import { until } from './until.js';

export interface Order {
  readonly to: 'redis' | 'sql' | 'http';
  /** Where it is stopped. */
  readonly at: 'before' | 'inside' | 'admitted';
  readonly keys: readonly string[];
  /** It does not stop itself there: somebody else will. */
  readonly goesOn?: boolean;
  /** @default both */
  readonly ways?: readonly Way[];
}

/** Through a gate, or beside it. */
export type Way = 'guarded' | 'plain';

/** By key: `written`, or why not. */
export type Outcomes = Readonly<Record<string, Readonly<Record<Way, string>>>>;

interface Said {
  readonly checked?: readonly string[];
  readonly outcomes?: Outcomes;
}

/** A service that is stopped after its last check, see paused-owner.mjs. */
export class PausedOwner extends TalkingProcess<Said> {
  static start(lib: CompiledLib, options: object): Promise<PausedOwner> {
    return new PausedOwner('paused-owner.mjs', [lib.dir, JSON.stringify(options)]).started();
  }

  /** Resolves with those of the keys under which it has come to where it is stopped. */
  async comeTo(order: Order): Promise<readonly string[]> {
    this.said.length = 0;
    this.tell(JSON.stringify(order));
    return await this.#answer('checked');
  }

  /** Of what it was last told. */
  outcomes(): Promise<Outcomes> {
    return this.#answer('outcomes');
  }

  #answer<Name extends keyof Said>(name: Name): Promise<NonNullable<Said[Name]>> {
    const options = { timeout: 20_000, what: `A says "${name}"` };
    return until(() => {
      if (this.hasExited) throw new Error(`A ended: ${this.errors}`);
      return this.said.find((line) => line[name] !== undefined)?.[name];
    }, options);
  }
}
