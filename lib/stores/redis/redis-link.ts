import type { Redis } from 'ioredis';
import { BAD_REPLY, NOT_CONNECTED, READ_ONLY_REDIS } from '../../lease.messages.js';
import { hangUp, hideSecrets, untilReady } from './redis-connection.js';
import { isDigits } from './redis-replies.js';
import type { LuaScript } from './scripts.js';
import { readServerInfo, type ServerInfo } from './server-info.js';
import { ServerTime } from './server-time.js';
import { Silence } from './silence.js';

export const CONNECT_PATIENCE = 2_000;

export interface LinkOptions {
  /** Whether it leads to a node of a cluster. */
  readonly isInCluster?: boolean;
  /** The server turned out to be a replica: whoever else is connected to it should look for the primary too. */
  readonly onReadOnly?: () => void;
  /** What is to leave before anything else does. */
  readonly first?: () => void;
  /** The process exits: nobody will be there to hear an answer. */
  readonly isExiting?: () => boolean;
}

/** A connection to one server, what is known of that server, and scripts on their way to it. */
export class RedisLink {
  readonly time = new ServerTime();
  readonly silence = new Silence();
  /** Leases that a node of a cluster is only about to get: it answers for them when it is told that we know (ASKING). */
  readonly asking = new Set<string>();
  #client: Redis;
  #server: ServerInfo | undefined;
  #closed = false;

  constructor(
    private readonly connect: () => Redis,
    private readonly options: LinkOptions = {},
  ) {
    this.#client = this.#connection();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get isReady(): boolean {
    return !this.#closed && this.#client.status === 'ready';
  }

  get keyPrefix(): string {
    return this.#client.options.keyPrefix ?? '';
  }

  /** Of the server that answers on this connection; nothing before its clock is known. */
  get server(): ServerInfo | undefined {
    return this.#server;
  }

  get client(): Redis {
    return this.#client;
  }

  async open(): Promise<void> {
    if (this.#closed) {
      this.#closed = false;
      this.#client = this.#connection();
    }
    await untilReady(this.#client, CONNECT_PATIENCE);
    await this.learnTime();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await hangUp(this.#client);
  }

  ready(patience: number): Promise<void> | undefined {
    if (this.#closed) throw new Error(NOT_CONNECTED());
    return this.#client.status === 'ready' ? undefined : untilReady(this.#client, patience);
  }

  /** Of a connection that was not asked before also what the server is: one that cannot be worked with is named. */
  async learnTime(): Promise<void> {
    const client = this.#client;
    try {
      const isNew = this.#server === undefined;
      const asked = this.silence.during(client.time());
      // A user that may not ask for it can work all the same.
      const told = isNew ? this.silence.during(client.info('server').catch(() => '')) : undefined;
      const [reply, info] = await Promise.all([asked as Promise<unknown>, told]);
      // Without a clock there is no deadline, and a claim without one could be executed late (rule 2).
      const isTime = Array.isArray(reply) && reply.length === 2 && reply.every(isDigits);
      if (!isTime) throw new Error(BAD_REPLY('TIME'));
      const isSame = this.#client === client && client.status === 'ready';
      if (isNew) {
        const server = readServerInfo(info, this.options.isInCluster === true);
        if (isSame) this.#server = server;
      }
      const [seconds, micros] = reply as [string, string];
      if (isSame) this.time.heard(Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000));
    } catch (error) {
      throw hideSecrets(error);
    }
  }

  run(
    script: LuaScript,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    return new Promise((resolve, reject) => this.send(script, keys, args, resolve, reject));
  }

  /** By its SHA; a server that forgot the script (restart, SCRIPT FLUSH) is sent it whole, with the same token. */
  send(
    { sha1, source }: LuaScript,
    keys: readonly string[],
    args: readonly (string | number)[],
    answered: (reply: unknown) => void,
    failed: (error: unknown) => void,
  ): void {
    this.options.first?.();
    const client = this.#client;
    const { silence } = this;
    const onAnswer = (reply: unknown): void => {
      silence.answered();
      answered(reply);
    };
    const onError = (error: unknown): void => {
      silence.answered();
      failed(this.#judge(client, error));
    };
    silence.asked();
    this.#ask(client, keys);
    if (this.options.isExiting?.()) {
      // Nobody could be told that the server does not know it, and nothing waits for company any more.
      client.options.enableAutoPipelining = false;
      client.eval(source, keys.length, ...keys, ...args).then(onAnswer, onError);
      return;
    }
    client.evalsha(sha1, keys.length, ...keys, ...args).then(onAnswer, (error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) return onError(error);
      this.#ask(client, keys);
      client.eval(source, keys.length, ...keys, ...args).then(onAnswer, onError);
    });
  }

  /** How many replicas have all that was written over this connection, asked for `ms` at most. */
  async copies(wanted: number, ms: number): Promise<number> {
    try {
      const copies: unknown = await this.silence.during(this.#client.wait(wanted, ms));
      if (!Number.isSafeInteger(copies)) throw new Error(BAD_REPLY('WAIT'));
      return copies as number;
    } catch (error) {
      throw hideSecrets(error);
    }
  }

  #connection(): Redis {
    return this.silence.watch(this.connect()).on('close', () => {
      this.time.forget();
      this.#server = undefined;
    });
  }

  #ask(client: Redis, keys: readonly string[]): void {
    if (this.asking.size === 0 || !this.asking.has(keys[0]!)) return;
    // For the next command alone; what is wrong with it shows there.
    client.asking().catch(() => {});
  }

  #judge(client: Redis, error: unknown): unknown {
    const hidden = hideSecrets(error);
    if (!(hidden instanceof Error && READ_ONLY.test(hidden.message))) return hidden;
    // A primary that was demoted, or no primary from the start: the next connection may lead to the one that is.
    client.disconnect(true);
    this.options.onReadOnly?.();
    return new Error(READ_ONLY_REDIS(), { cause: hidden });
  }
}

// Redis before 7 puts what a command of a script answered behind an error of its own.
const READ_ONLY = /^READONLY |-READONLY /;
