import { createHash } from 'node:crypto';
import { scripts } from './scripts.js';

/** What is needed of a client of ioredis, 5 or 6, alone or of a cluster. @publicApi */
export interface GuardableRedis {
  evalsha(
    sha1: string,
    numberOfKeys: number,
    ...rest: (string | Buffer | number)[]
  ): Promise<unknown>;
  eval(
    script: string,
    numberOfKeys: number,
    ...rest: (string | Buffer | number)[]
  ): Promise<unknown>;
  readonly options?: { readonly keyPrefix?: string | undefined };
}

/** A script that is run only when the fence before it was admitted. */
export class GuardedScript {
  readonly #source: string;
  readonly #sha1: string;

  constructor(body: string) {
    this.#source = `${scripts.guard.source}return { 1, (function(KEYS, ARGV)\n${body}\nend)(keys, args) }`;
    this.#sha1 = createHash('sha1').update(this.#source).digest('hex');
  }

  async run(
    client: GuardableRedis,
    keys: readonly string[],
    args: readonly (string | Buffer | number)[],
  ): Promise<unknown> {
    try {
      return await client.evalsha(this.#sha1, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await client.eval(this.#source, keys.length, ...keys, ...args);
    }
  }
}

const KEPT = 100;
const own = new Map<string, GuardedScript>();

/** For a text of the user's: most have a handful of them, and who makes them up as he goes is not to fill the memory. */
export function guardedScript(body: string): GuardedScript {
  let script = own.get(body);
  if (script === undefined) {
    if (own.size >= KEPT) own.delete(own.keys().next().value!);
    script = new GuardedScript(body);
    own.set(body, script);
  }
  return script;
}
