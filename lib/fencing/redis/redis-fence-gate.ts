import {
  BAD_OPTION,
  BAD_REDIS_GATE_CLIENT,
  BAD_REDIS_GATE_FIELDS,
  BAD_REPLY,
  CROSS_SLOT_GATE,
  KEY_IS_MARK,
} from '../../lease.messages.js';
import { parseDuration, type Duration } from '../../lease/duration.js';
import { assertKnown } from '../../lease/resolve-options.js';
import { FenceGate, type GuardedGate, type Mark } from '../fence-gate.js';
import type { FenceSource } from '../fence-source.js';
import { Retention } from '../retention.js';
import { GuardedScript, guardedScript, type GuardableRedis } from './guarded-script.js';
import { isMarkName, markName } from './mark-name.js';

/**
 * @publicApi
 */
export interface RedisFenceGateOptions {
  /**
   * What the names of marks begin with.
   * @default 'fence'
   */
  prefix?: string;
  /**
   * How long a resource that nobody writes to is remembered. A lease that is older than half of it cannot begin to
   * write to a resource that is not. `Infinity` keeps all marks, for fences that are no times.
   * @default '90d'
   */
  retention?: Duration;
}

/** @publicApi */
export type RedisValue = string | number | Buffer;

/**
 * What a guarded write is for.
 *
 * @publicApi
 */
export interface GuardedWrite {
  /**
   * What is written to, where it is more than the one key. In a cluster all keys of a write must be in the slot that a
   * key of this name would be in: `{prices}:eur` and `{prices}:usd` for the resource `prices`.
   * @default the key
   */
  resource?: string;
  /** @default that of the lease this code runs under */
  fence?: FenceSource;
}

/**
 * Writes that are done only if the fence is admitted, in the same atomic step.
 *
 * @publicApi
 */
export interface GuardedRedis<Write = Omit<GuardedWrite, 'fence'>> extends GuardedGate {
  /** SET; with `ttl`, for that long. */
  set(key: string, value: RedisValue, write?: Write & { ttl?: Duration }): Promise<void>;
  /** HSET; how many fields are new. */
  hset(key: string, fields: Readonly<Record<string, RedisValue>>, write?: Write): Promise<number>;
  /** DEL; how many keys there were. */
  del(key: string | readonly string[], write?: Write): Promise<number>;
  /** A script of yours, with its own KEYS and ARGV; what it returns. */
  run(
    script: string,
    write: Write & { keys?: readonly string[]; args?: readonly RedisValue[] },
  ): Promise<unknown>;
}

const WRITES = {
  admit: new GuardedScript('return true'),
  set: new GuardedScript(`return redis.call('SET', KEYS[1], unpack(ARGV))`),
  // In portions: unpack has a limit, and a hash may have more fields than that.
  hset: new GuardedScript(`local new = 0
for i = 1, #ARGV, 1000 do
  new = new + redis.call('HSET', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
return new`),
  del: new GuardedScript(`local gone = 0
for i = 1, #KEYS do
  gone = gone + redis.call('DEL', KEYS[i])
end
return gone`),
};

/**
 * Keeps stale owners from writing to Redis: the mark and the write are one script, on the server that has both. For
 * correctness, as far as that server keeps what it was told: a failover that forgets the mark forgets the write too,
 * or neither.
 *
 * @example
 * ```ts
 * const gate = new RedisFenceGate(redis);       // your ioredis client, or cluster; never closed here
 *
 * await gate.set(`prices:${currency}`, JSON.stringify(prices), { ttl: '1h' });
 * await gate.hset('report:42', { state: 'done', pages: 17 });
 * await gate.run(`return redis.call('INCRBY', KEYS[1], ARGV[1])`, { resource: 'stock', keys: ['stock:42'], args: [-1] });
 * ```
 * @publicApi
 */
export class RedisFenceGate extends FenceGate implements GuardedRedis<GuardedWrite> {
  readonly #client: GuardableRedis;
  readonly #prefix: string;
  readonly #retention: Retention;

  constructor(client: GuardableRedis, options: RedisFenceGateOptions = {}) {
    super();
    if (typeof client?.evalsha !== 'function') throw new TypeError(BAD_REDIS_GATE_CLIENT(client));
    assertKnown(options, { prefix: true, retention: true });
    const { prefix = 'fence', retention } = options;
    if (typeof prefix !== 'string' || !/^[\w.:-]{1,100}$/.test(prefix)) {
      throw new TypeError(BAD_OPTION('prefix', prefix, '1 to 100 letters, digits and _ . : -'));
    }
    this.#client = client;
    this.#prefix = prefix;
    this.#retention = new Retention(retention);
  }

  async set(
    key: string,
    value: RedisValue,
    write: GuardedWrite & { ttl?: Duration } = {},
  ): Promise<void> {
    const { ttl, ...rest } = write;
    const expiry =
      ttl === undefined ? [] : ['PX', Math.ceil(parseDuration(ttl, 'ttl', { min: 1 }))];
    await this.#write(WRITES.set, [key], [value, ...expiry], rest);
  }

  async hset(
    key: string,
    fields: Readonly<Record<string, RedisValue>>,
    write: GuardedWrite = {},
  ): Promise<number> {
    const flat = Object.entries(fields ?? {}).flat();
    if (flat.length === 0) throw new TypeError(BAD_REDIS_GATE_FIELDS(key));
    return Number(await this.#write(WRITES.hset, [key], flat, write));
  }

  async del(key: string | readonly string[], write: GuardedWrite = {}): Promise<number> {
    const keys = typeof key === 'string' ? [key] : key;
    return Number(await this.#write(WRITES.del, keys, [], write));
  }

  async run(
    script: string,
    write: GuardedWrite & { keys?: readonly string[]; args?: readonly RedisValue[] },
  ): Promise<unknown> {
    if (typeof script !== 'string') throw new TypeError(BAD_OPTION('script', script, 'a text'));
    const { keys = [], args = [], ...rest } = write;
    return await this.#write(guardedScript(script), keys, args, rest);
  }

  override under(fence: FenceSource, onUse: () => void = () => {}): GuardedRedis {
    const using = <Args extends unknown[], T>(act: (...args: Args) => T) => {
      return (...args: Args): T => {
        onUse();
        return act(...args);
      };
    };
    return {
      ...super.under(fence, onUse),
      set: using((key, value, write) => this.set(key, value, { ...write, fence })),
      hset: using((key, fields, write) => this.hset(key, fields, { ...write, fence })),
      del: using((key, write) => this.del(key, { ...write, fence })),
      run: using((script, write) => this.run(script, { ...write, fence })),
    };
  }

  protected async raise(resource: string, fence: number): Promise<Mark> {
    const { refused } = await this.#ask(WRITES.admit, resource, fence, [], []);
    return refused ?? { highest: fence };
  }

  async #write(
    script: GuardedScript,
    keys: readonly string[],
    args: readonly RedisValue[],
    write: GuardedWrite,
  ): Promise<unknown> {
    assertKnown(write, { resource: true, fence: true });
    const resource = write.resource ?? keys[0];
    const found = this.find(resource as string, write.fence);
    for (const key of keys) {
      if (typeof key !== 'string') throw new TypeError(BAD_OPTION('key', key, 'a text'));
      // A key may be made of anybody's input: it is never a way to a mark (rule 14).
      if (isMarkName(this.#prefix, key)) throw new RangeError(KEY_IS_MARK(key));
    }
    const { refused, result } = await this.#ask(script, resource!, found.fence, keys, args);
    if (refused !== undefined) throw this.refuse(resource!, found, refused);
    return result;
  }

  async #ask(
    script: GuardedScript,
    resource: string,
    fence: number,
    keys: readonly string[],
    args: readonly RedisValue[],
  ): Promise<{ readonly refused?: Mark; readonly result?: unknown }> {
    const mark = markName(this.#prefix, resource, this.#client.options?.keyPrefix ?? '');
    const kept = this.#retention.isForever ? 0 : Math.ceil(this.#retention.kept / 1_000);
    let reply: unknown;
    try {
      reply = await script.run(this.#client, [mark, ...keys], [fence, kept, ...args]);
    } catch (error) {
      const { message } = error as Error;
      if (!/CROSSSLOT|same slot/i.test(message)) throw error;
      throw new Error(CROSS_SLOT_GATE(resource, keys), { cause: error });
    }
    const [verdict, answer, isFloor] = Array.isArray(reply) ? (reply as unknown[]) : [];
    if (Number(verdict) === 1) {
      // An error that a script returns instead of raising it.
      if (answer instanceof Error) throw answer;
      return { result: answer ?? null };
    }
    const highest = Number(answer);
    if (Number(verdict) !== 0 || !(highest > fence)) throw new Error(BAD_REPLY('a guarded write'));
    return { refused: { highest, isFloor: Number(isFloor) === 1 } };
  }
}
