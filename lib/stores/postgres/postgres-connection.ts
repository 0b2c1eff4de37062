// By its default: older ones of the peer range are CommonJS, whose names Node does not see.
import postgres, {
  type Client,
  type ClientConfig,
  type Pool,
  type PoolClient,
  type PoolConfig,
} from 'pg';
import {
  BAD_POSTGRES_CONNECTION,
  BAD_POSTGRES_URL,
  NO_POSTGRES,
  POSTGRES_SILENT,
} from '../../lease.messages.js';
import { leavesUsable } from './postgres-errors.js';

// oxlint-disable-next-line import/no-named-as-default-member
const { Client: NewClient, Pool: NewPool } = postgres;

/** What finds out soon that a connection is dead. Nothing that a pooler would refuse at the start of a session. */
const LIVELY = {
  application_name: 'nestjs-lease',
  connectionTimeoutMillis: 2_000,
  keepAlive: true,
  keepAliveInitialDelayMillis: 5_000,
} as const satisfies ClientConfig;

const POOL = { max: 4, idleTimeoutMillis: 30_000, allowExitOnIdle: true } as const;

/** A server that owes an answer for so long is given up: else a half-open connection would never be. */
export const SILENCE = 2_000;

export type Row = Readonly<Record<string, unknown>>;

/** Says what is wrong with it, and repeats no password (rule 15). */
export function assertConnection(store: string, to: unknown): void {
  if (typeof to === 'string') return assertUrl(store, to);
  if (typeof to !== 'object' || to === null || Array.isArray(to)) {
    throw new TypeError(BAD_POSTGRES_CONNECTION(store, to));
  }
  const { connectionString } = to as { connectionString?: unknown };
  if (connectionString === undefined) return;
  if (typeof connectionString !== 'string') {
    throw new TypeError(BAD_POSTGRES_CONNECTION(store, connectionString));
  }
  assertUrl(store, connectionString);
}

function assertUrl(store: string, url: string): void {
  if (url.startsWith('/')) return;
  let protocol = '';
  try {
    ({ protocol } = new URL(url));
  } catch {
    // Not a URL at all: told below, without the text, which may hold a password.
  }
  if (!['postgres:', 'postgresql:', 'socket:'].includes(protocol)) {
    throw new TypeError(BAD_POSTGRES_URL(store));
  }
}

export function isPool(to: string | PoolConfig | Pool): to is Pool {
  return typeof to === 'object' && 'connect' in to && typeof to.connect === 'function';
}

/** A connection of its own to where the store goes, also beside a pool of the user's. */
export function clientFor(to: string | PoolConfig | Pool, more: ClientConfig = {}): Client {
  if (typeof to === 'string') return new NewClient({ ...LIVELY, ...more, connectionString: to });
  if (!isPool(to)) return new NewClient({ ...LIVELY, ...to, ...more });
  const { options } = to as Pool & { options: PoolConfig };
  // A pool keeps its password where copying does not see it.
  const { password } = options;
  return new NewClient({
    ...LIVELY,
    ...options,
    ...more,
    ...(password === undefined ? {} : { password }),
  });
}

/** Where statements are sent: a small pool of our own, or the user's, which is never closed here. */
export class Connections {
  readonly #to: string | PoolConfig | Pool;
  readonly #onTrouble: () => void;
  #pool: Pool | undefined;
  #isClosed = false;

  /** @param onTrouble - a connection was lost: the next may lead to another server */
  constructor(to: string | PoolConfig | Pool, onTrouble: () => void) {
    this.#to = to;
    this.#onTrouble = onTrouble;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  open(): void {
    this.#isClosed = false;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const pool = this.#pool;
    this.#pool = undefined;
    pool?.off('error', this.#onTrouble);
    if (pool === undefined || isPool(this.#to)) return;
    pool.on('error', () => undefined);
    await pool.end();
  }

  /**
   * Sends one statement and gives its rows. `until` bounds how long it may wait for a connection, on the monotonic
   * clock: what cannot be sent by then is not sent at all (rule 2).
   */
  async ask(text: string, values: readonly unknown[] | undefined, until: number): Promise<Row[]> {
    const client = await this.#checkOut(until);
    // Without a listener a connection that breaks while it is ours ends the process (rule 12).
    const onError = (): void => undefined;
    client.on('error', onError);
    try {
      const limit = Math.max(until - performance.now(), SILENCE);
      const asked =
        values === undefined ? client.query(text) : client.query({ text, values: [...values] });
      const { rows } = await within(limit, asked, () => new Error(POSTGRES_SILENT(limit)));
      client.release();
      return rows as Row[];
    } catch (error) {
      if (!leavesUsable(error)) this.#onTrouble();
      client.release(!leavesUsable(error));
      throw error;
    } finally {
      // Back in the pool, which listens itself.
      client.off('error', onError);
    }
  }

  async #checkOut(until: number): Promise<PoolClient> {
    if (this.#isClosed) throw new Error(NO_POSTGRES());
    const connecting = this.#open().connect();
    const left = Math.max(until - performance.now(), 1);
    try {
      return await within(left, connecting, () => new Error(NO_POSTGRES()));
    } catch (error) {
      this.#onTrouble();
      // One that comes too late is nobody's: back to the pool with it.
      connecting.then(
        (client) => client.release(),
        () => undefined,
      );
      throw error;
    }
  }

  #open(): Pool {
    if (this.#pool !== undefined) return this.#pool;
    const to = this.#to;
    if (isPool(to)) this.#pool = to;
    else {
      const config = typeof to === 'string' ? { connectionString: to } : to;
      this.#pool = new NewPool({ ...LIVELY, ...POOL, ...config });
    }
    return this.#pool.on('error', this.#onTrouble);
  }
}

/** The answer, or an error of ours when it takes longer. What comes later is nobody's concern. */
export function within<T>(ms: number, answer: Promise<T>, error: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(error()), ms).unref();
    answer.then(resolve, reject).finally(() => clearTimeout(limit));
  });
}
