import { Redis, type RedisOptions } from 'ioredis';
import { BAD_REDIS_CONNECTION, BAD_REDIS_URL, NOT_CONNECTED } from '../../lease.messages.js';

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
} as const satisfies RedisOptions;

/** What finds out soon that a connection is dead, and is back soon after the server is. */
const LIVELY = {
  connectTimeout: 2_000,
  socketTimeout: 2_000,
  retryStrategy: (tries: number) => Math.min(25 * 2 ** Math.min(tries, 6), 1_000),
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
export function connectionFor(to: string | RedisOptions | IoredisClient | undefined): Redis {
  if (typeof to === 'string') {
    assertUrl(to);
    return new Redis(to, { ...LIVELY, ...NEVER_LATE });
  }
  if (typeof to !== 'object' || to === null) throw new TypeError(BAD_REDIS_CONNECTION(to));
  if (isClient(to)) {
    // A database chosen by SELECT after connecting is where the user is now.
    const { condition, options } = to as IoredisClient & {
      condition?: { select?: number };
      options: RedisOptions;
    };
    const db = condition?.select ?? options.db ?? 0;
    return to.duplicate({ ...LIVELY, ...NEVER_LATE, db }) as Redis;
  }
  return new Redis({ ...LIVELY, ...to, ...NEVER_LATE });
}

function isClient(to: object): to is IoredisClient {
  return 'duplicate' in to && typeof to.duplicate === 'function';
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
      cause = error;
    };
    const onClose = (): void => settle(() => reject(new Error(NOT_CONNECTED(), { cause })));
    const limit = setTimeout(onClose, ms);
    client.on('ready', onReady).on('close', onClose).on('error', onError);
    // Its failures come as events too.
    if (client.status === 'wait' || client.status === 'end') client.connect().catch(onError);
  });
}
