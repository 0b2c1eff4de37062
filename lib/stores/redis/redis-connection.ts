import { Redis, type RedisOptions } from 'ioredis';
import {
  BAD_REDIS_CONNECTION,
  BAD_REDIS_URL,
  NOT_CONNECTED,
  PROTECTED_REDIS,
  UNKNOWN_SENTINEL_NAME,
} from '../../lease.messages.js';

/**
 * What keeps a claim from running after nobody waits for it: nothing is queued while there is no connection, and
 * nothing is sent again by itself after a reconnect. Not for the user to change.
 */
const NEVER_LATE = {
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // The shape of replies that the store reads.
  replyMapping: 'legacy',
  stringNumbers: false,
} as const satisfies RedisOptions;

/** What finds out soon that a connection is dead, and is back soon after the server is. */
export const LIVELY = {
  connectTimeout: 2_000,
  socketTimeout: 2_000,
  disconnectTimeout: 500,
  // Seldom enough for a server that is down, often enough for a short ttl to survive a short trouble.
  retryStrategy: (tries: number) => Math.min(25 * 2 ** tries, 250),
  connectionName: 'nestjs-lease',
} as const satisfies RedisOptions;

/**
 * A client of the user's, of ioredis 5 or 6 and whatever its settings: as much of it as we need.
 *
 * @publicApi
 */
export interface IoredisClient {
  readonly status: string;
  readonly options: object;
  duplicate(override?: object): unknown;
}

/**
 * A connection of our own with safe settings: to a URL, with options, or where a client of the user's goes to,
 * with its database, key prefix, TLS and user. The user's client itself is left alone.
 */
export function connectionFor(
  to: string | RedisOptions | IoredisClient | undefined,
  settings: Settings = {},
): Redis {
  const client = unconnected(to, settings);
  // Every claim that waits for the connection listens, and there may be hundreds of them at a start.
  client.setMaxListeners(0);
  // Without a listener ioredis writes to the console; who asked is told by a refusal with its cause.
  client.on('error', (error) => {
    // ioredis goes on in database 0 when it may not have the one it was told.
    if (commandOf(error) === 'select') client.disconnect();
    hideSecrets(error);
  });
  return quietAtItsEnd(client);
}

/**
 * ioredis listens to the first error of a socket alone. One that is given up while TLS is negotiated may have two, of
 * which the second would end the process (rule 12).
 */
function quietAtItsEnd(client: Redis): Redis {
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (isToReconnect) => {
    const { stream } = client as { stream?: Redis['stream'] };
    stream?.on('error', () => {});
    disconnect(isToReconnect);
  };
  return client;
}

interface Settings {
  readonly autoResubscribe?: boolean;
  readonly keepAlive?: number;
}

/** A connection that only listens: it may be silent for long, and subscribes by itself. */
export function subscriberFor(to: string | RedisOptions | IoredisClient | undefined): Redis {
  return connectionFor(to, { autoResubscribe: false, keepAlive: 5_000 });
}

function unconnected(
  to: string | RedisOptions | IoredisClient | undefined,
  settings: Settings,
): Redis {
  if (typeof to === 'string') {
    assertUrl(to);
    return new Redis(to, { ...LIVELY, ...NEVER_LATE, ...settings });
  }
  if (typeof to !== 'object' || to === null || Array.isArray(to)) {
    throw new TypeError(BAD_REDIS_CONNECTION(to));
  }
  if (isClient(to)) {
    return to.duplicate({
      ...LIVELY,
      ...NEVER_LATE,
      ...settings,
      db: databaseOf(to),
    }) as Redis;
  }
  return new Redis({ ...LIVELY, ...to, ...NEVER_LATE, ...settings });
}

export function isClient(to: object): to is IoredisClient {
  return 'duplicate' in to && typeof to.duplicate === 'function';
}

/** A database chosen by SELECT after connecting is where the user is now. */
function databaseOf(client: IoredisClient): number {
  const { condition, options } = client as IoredisClient & {
    condition?: { select?: number };
    options: RedisOptions;
  };
  return condition?.select ?? options.db ?? 0;
}

/** The options of a connection beside a client of the user's, for one that is not made by duplicating it. */
export function settingsBeside(client: IoredisClient): RedisOptions {
  const { retryStrategy: _, ...lively } = LIVELY;
  const { retryStrategy: __, ...theirs } = client.options as RedisOptions;
  return { ...theirs, ...lively, db: databaseOf(client) };
}

function assertUrl(url: string): void {
  if (url.startsWith('/')) return;
  let protocol = '';
  try {
    ({ protocol } = new URL(url));
  } catch {
    // Not a URL at all: told below, without the text, which may hold a password (rule 15).
  }
  if (protocol !== 'redis:' && protocol !== 'rediss:') throw new TypeError(BAD_REDIS_URL());
}

/** Resolves when the socket is gone. The connection cannot be used again: make another. */
export function hangUp(client: Redis): Promise<void> {
  const isUp = ['connecting', 'connect', 'ready'].includes(client.status);
  client.disconnect();
  return isUp ? new Promise((resolve) => client.once('end', resolve)) : Promise.resolve();
}

/**
 * Takes from an error of ioredis what must not get into a log: the arguments of its command, among them owner
 * tokens and the password of AUTH (rule 15).
 */
export function hideSecrets<T>(error: T): T {
  if (!(error instanceof Error)) return error;
  if ('command' in error) delete error.command;
  if (ARGUMENTS.test(error.message)) {
    const { name } = error;
    return Object.assign(new Error(error.message.replace(ARGUMENTS, '')), { name }) as T;
  }
  return error;
}

// Of a server that does not know a command.
const ARGUMENTS = /,? with args beginning with.*/s;

function commandOf(error: unknown): string | undefined {
  return (error as { command?: { name?: string } }).command?.name;
}

/** What is said so that only who knows Redis well understands it, said plainly. */
function named(error: unknown, name: string | undefined): unknown {
  const message = error instanceof Error ? error.message : '';
  if (message.startsWith('DENIED')) return new Error(PROTECTED_REDIS(), { cause: error });
  if (name !== undefined && message.includes('No such master with that name')) {
    return new Error(UNKNOWN_SENTINEL_NAME(name), { cause: error });
  }
  return error;
}

/** Resolves when the connection can be used; rejects when this try to connect failed, or after `ms`. */
export function untilReady(client: Redis, ms: number): Promise<void> {
  if (client.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    let cause: unknown;
    const settle = (done: () => void): void => {
      clearTimeout(limit);
      client.off('ready', onReady).off('close', onClose).off('error', onError);
      done();
    };
    const onReady = (): void => settle(resolve);
    const onError = (error: unknown): void => {
      cause = named(hideSecrets(error), client.options.name);
    };
    const onClose = (): void => settle(() => reject(new Error(NOT_CONNECTED(), { cause })));
    const limit = setTimeout(onClose, ms);
    client.on('ready', onReady).on('close', onClose).on('error', onError);
    // Its failures come as events too.
    if (client.status === 'wait' || client.status === 'end') client.connect().catch(onError);
  });
}
