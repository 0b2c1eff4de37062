import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolConfig } from 'pg';
import { parseDuration, type Duration } from '../../lease/duration.js';
import type { Lease } from '../../lease/lease.js';
import {
  BAD_POSTGRES_ANSWER,
  POSTGRES_CLAIM_CROWDED,
  POSTGRES_CLAIM_LATE,
} from '../../lease.messages.js';
import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
  RenewOutcome,
  StoreInThread,
} from '../lease-store.js';
import { ServerTime } from '../redis/server-time.js';
import { assertHeldIn, type Queryable } from './assert-held.js';
import { Listener } from './listener.js';
import { lockId } from './lock-id.js';
import { createSql } from './migration.js';
import { withDefaults } from './options.js';
import { assertConnection, clientFor, Connections, type Row } from './postgres-connection.js';
import { connectionForThread } from './postgres-in-thread.js';
import { fenceOf, microsOf, nextPage } from './postgres-answer.js';
import { toRecord } from './postgres-record.js';
import { statementsFor } from './statements.js';
import { Sweeper } from './sweeper.js';
import { tableOf } from './table.js';
import { Tables } from './tables.js';

/**
 * @publicApi
 */
export interface PostgresLeaseStoreOptions {
  /**
   * The table, or `schema.table`; beside it one with `_done` behind its name. Every process must name the same.
   * @default 'nestjs_lease'
   */
  table?: string;
  /**
   * Whether the tables are created when they are missing. Without it run {@link postgresLeaseSql} in a migration.
   * @default true
   */
  createTable?: boolean;
  /**
   * How long the fence of a key is remembered after its last use: the longest step back of the server's clock that
   * fences survive. Rows of keys that nobody uses go some time after that; never before ten of their ttls.
   * @default '24h'
   */
  fenceRetention?: Duration;
  /**
   * Whether waiters are told of a release, over a connection of its own that listens. Turn it off behind a pooler that
   * gives a connection for a transaction only; waiters then poll.
   * @default true
   */
  listen?: boolean;
}

const PATIENCE = 2_000;
/** While others claim the same key in the same moment. */
const CROWD_PAUSE = 2;
const CROWD_PAUSE_AT_MOST = 50;

/**
 * Leases in rows of a PostgreSQL that you already have: the word of one primary, and a guard for your own
 * transactions that no stale owner gets past ({@link assertHeld}).
 *
 * @example
 * ```ts
 * LeaseModule.forRoot({ store: new PostgresLeaseStore(process.env.DATABASE_URL) });
 * LeaseModule.forRoot({ store: new PostgresLeaseStore(yourPool, { table: 'app.leases' }) }); // never closes it
 * ```
 * @publicApi
 */
export class PostgresLeaseStore implements LeaseStore {
  readonly name = 'PostgreSQL';
  readonly limits: LeaseStore['limits'];
  /** Absent with `listen: false`. */
  readonly watch?: (key: string, onFree: () => void) => Promise<() => Promise<void>>;

  readonly #connections: Connections;
  readonly #tables: Tables;
  readonly #sql: ReturnType<typeof statementsFor>;
  readonly #listener: Listener;
  readonly #sweeper: Sweeper;
  readonly #time = new ServerTime();
  readonly #retention: number;
  readonly #inThread: () => StoreInThread;

  constructor(
    connection: string | PoolConfig | Pool | undefined,
    options: PostgresLeaseStoreOptions = {},
  ) {
    assertConnection('PostgresLeaseStore', connection);
    const to = connection!;
    const {
      table: name,
      createTable,
      fenceRetention,
      listen,
    } = withDefaults(options, {
      table: 'nestjs_lease',
      createTable: true,
      fenceRetention: '24h',
      listen: true,
    });
    const table = tableOf(name);
    this.#retention = micros(parseDuration(fenceRetention, 'fenceRetention', { min: 1_000 }));
    this.#sql = statementsFor(table);
    this.#connections = new Connections(to, () => this.#time.forget());
    this.#tables = new Tables(
      this.#connections,
      table.name,
      createTable ? createSql(table) : undefined,
    );
    this.#sweeper = new Sweeper((atMost) => this.#sweep(atMost));
    this.#listener = new Listener(() => clientFor(to));
    if (listen) this.watch = (key, onFree) => this.#listener.watch(key, onFree);
    this.limits = { minTtl: 50, maxTtl: 86_400_000, permits: true, push: listen, shared: true };
    this.#inThread = () => ({
      module: import.meta.url,
      export: 'PostgresLeaseStore',
      args: [connectionForThread(to), options],
    });
  }

  async open(): Promise<void> {
    this.#connections.open();
    this.#listener.open();
    await this.#learnTime(performance.now() + PATIENCE);
  }

  /** Another pool to the same place; of one that was passed in, as it was configured. */
  thread(): StoreInThread {
    return this.#inThread();
  }

  async acquire(claim: Claim): Promise<Grant | Refusal> {
    const until = performance.now() + claim.patience;
    for (let tries = 1; ; tries++) {
      if (!this.#time.isFreshAt(performance.now())) await this.#learnTime(until);
      const answer = await this.#claim(claim, until);
      if (answer !== 'late' && answer !== 'crowded') return answer;
      // Too late, or the server's clock was set forward: known by now, so ask again while somebody waits.
      if (performance.now() >= until) return unavailable(answer);
      if (answer === 'crowded') await pause(tries);
    }
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    if (holds.length === 0) return [];
    const keys = holds.map(({ key }) => key);
    const tokens = holds.map(({ token }) => token);
    const ttls = holds.map(({ ttl }) => micros(ttl));
    const [row] = await this.#ask(this.#sql.renew, [keys, tokens, ttls, this.#retention], tokens);
    const outcomes = String(row?.['outcomes']).split(',');
    if (outcomes.length !== holds.length) throw new Error(BAD_POSTGRES_ANSWER('renew'));
    return outcomes.map((outcome) =>
      outcome === 'renewed' || outcome === 'gone' ? outcome : 'unknown',
    );
  }

  async release({ key, token }: Hold, { keepFor = 0, done }: ReleaseHow): Promise<boolean> {
    const mark = done === undefined ? [null, 0] : [done.once, micros(done.remember)];
    const kept = micros(Math.max(keepFor, 0));
    const values = [key, token, kept, ...mark, lockId('watch', key), this.#retention];
    const [row] = await this.#ask(this.#sql.release, values, [token]);
    const freed = row?.['freed'];
    if (freed !== '0' && freed !== '1') throw new Error(BAD_POSTGRES_ANSWER('release'));
    return freed === '1';
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    const [row] = await this.#ask(this.#sql.inspect, [key]);
    return row === undefined ? null : toRecord(row);
  }

  async *list({ prefix = '' }: { readonly prefix?: string } = {}): AsyncIterable<LeaseRecord> {
    let last: string | null = null;
    for (;;) {
      const rows: Row[] = await this.#ask(this.#sql.list, [prefix, last]);
      for (const row of rows) {
        const record = toRecord(row);
        if (record !== null) yield record;
      }
      if (rows.length === 0) return;
      last = nextPage(rows, last);
    }
  }

  /**
   * In a transaction of yours, before its commit: throws `LeaseLostException` unless the lease is held, and from then
   * on nobody else gets its keys before the transaction has ended. Renewals go on meanwhile. Needs READ COMMITTED.
   *
   * @example
   * ```ts
   * await client.query('BEGIN');
   * await store.assertHeld(client, lease);
   * await client.query('UPDATE accounts SET balance = balance - 10 WHERE id = 1');
   * await client.query('COMMIT');
   * ```
   */
  assertHeld(client: Queryable, lease: Lease): Promise<void> {
    return assertHeldIn(client, lease, this.#sql.held);
  }

  /** Closes what it opened itself; a pool that was passed in is the user's. {@link open} opens it again. */
  async close(): Promise<void> {
    await Promise.all([this.#listener.close(), this.#connections.close()]);
  }

  async #claim(claim: Claim, until: number): Promise<Grant | Refusal | 'late' | 'crowded'> {
    const { key, token, ttl, permits, instance, once = null } = claim;
    const deadline = this.#time.deadlineAt(until) * 1_000;
    const guard = lockId('guard', key);
    const who = [key, token, micros(ttl), permits, instance];
    const values = [...who, deadline, guard, once, this.#retention];
    const [row] = await this.#tables.ask(this.#sql.claim, values, until, [token]);
    const { verdict, fence, seen, now, may, guarded, free_at: freeAt } = row ?? {};
    this.#heard(now);
    if (fence != null) return this.#granted(fence);
    switch (verdict) {
      case 'late':
        return 'late';
      case 'done':
        return { granted: false, reason: 'done' };
      case 'held':
        return { granted: false, reason: 'held', retryAfterMs: between(seen, freeAt) };
      case 'free':
        // A transaction that relies on the lease of the last owner has not ended: there is no telling when it will.
        if (may === 'false' && guarded === 'true') return { granted: false, reason: 'held' };
        return 'crowded';
      case 'again':
        return 'crowded';
      default:
        throw new Error(BAD_POSTGRES_ANSWER('acquire'));
    }
  }

  #granted(text: unknown): Grant {
    const fence = fenceOf(text);
    this.#sweeper.now();
    return { granted: true, fence };
  }

  #ask(text: string, values: unknown[], secrets: readonly string[] = []): Promise<Row[]> {
    return this.#tables.ask(text, values, performance.now() + PATIENCE, secrets);
  }

  async #sweep(atMost: number): Promise<number> {
    const [row] = await this.#ask(this.#sql.sweep, [atMost]);
    return Number(row?.['most']);
  }

  async #learnTime(until: number): Promise<void> {
    const [row] = await this.#tables.ask(this.#sql.open, [], until);
    this.#heard(row?.['now']);
  }

  /** Without a clock there is no deadline, and a claim without one could be executed late (rule 2). */
  #heard(now: unknown): void {
    this.#time.heard(Math.floor(microsOf(now) / 1_000));
  }
}

const unavailable = (why: 'late' | 'crowded'): Refusal => ({
  granted: false,
  reason: 'unavailable',
  cause: new Error(why === 'late' ? POSTGRES_CLAIM_LATE() : POSTGRES_CLAIM_CROWDED()),
});

/** Up, so that a claim never ends before the holder thinks it does. */
const micros = (ms: number): number => Math.ceil(ms * 1_000);

/** Milliseconds from one µs of the server to another. */
function between(from: unknown, to: unknown): number {
  const ms = Math.ceil((microsOf(to) - microsOf(from)) / 1_000);
  return Math.max(0, ms);
}

/** Not all of them in the same moment again. */
const pause = (tries: number): Promise<void> =>
  sleep(Math.min(CROWD_PAUSE * tries, CROWD_PAUSE_AT_MOST) * Math.random(), undefined, {
    ref: false,
  });
