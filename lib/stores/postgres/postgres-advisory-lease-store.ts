import type { Pool, PoolConfig } from 'pg';
import { parseDuration, type Duration } from '../../lease/duration.js';
import {
  BAD_POSTGRES_ANSWER,
  NO_PERMITS,
  NOT_OF_THIS_STORE,
  POSTGRES_CLAIM_LATE,
  SESSION_LOST,
} from '../../lease.messages.js';
import {
  ownerPrefix,
  type Claim,
  type Grant,
  type Hold,
  type LeaseRecord,
  type LeaseStore,
  type Refusal,
  type ReleaseHow,
  type RenewOutcome,
} from '../lease-store.js';
import { ServerTime } from '../redis/server-time.js';
import { lockId } from './lock-id.js';
import { OneByOne } from './one-by-one.js';
import { withDefaults } from './options.js';
import { assertConnection, clientFor, type Row } from './postgres-connection.js';
import { fenceOf, microsOf, nextPage } from './postgres-answer.js';
import { toSessionRecord } from './session-record.js';
import { createSessionSql, sessionStatementsFor } from './session-statements.js';
import { Session } from './session.js';
import { Sweeper } from './sweeper.js';
import { tableOf } from './table.js';
import { Tables } from './tables.js';

/**
 * @publicApi
 */
export interface PostgresAdvisoryLeaseStoreOptions {
  /**
   * The table, or `schema.table`, that tells who holds what and remembers fences; the locks are not in it.
   * @default 'nestjs_lease_session'
   */
  table?: string;
  /**
   * Whether the table is created when it is missing.
   * @default true
   */
  createTable?: boolean;
  /**
   * How long the fence of a key is remembered after its last use.
   * @default '24h'
   */
  fenceRetention?: Duration;
}

interface Held {
  readonly token: string;
  readonly fence: string;
  /** Monotonic time until which the holder said it would have it. */
  until: number;
}

const PATIENCE = 2_000;

/**
 * Leases as advisory locks of one PostgreSQL session: freed in the moment that the holder's connection ends, and not by
 * time. Read "Which of the two" in docs/postgres.md; {@link PostgresLeaseStore} is the one to begin with.
 *
 * @example
 * ```ts
 * LeaseModule.forRoot({ store: new PostgresAdvisoryLeaseStore(process.env.DATABASE_URL) });
 * ```
 * @publicApi
 */
export class PostgresAdvisoryLeaseStore implements LeaseStore {
  readonly name = 'PostgreSQL (advisory locks)';
  readonly limits = {
    minTtl: 50,
    maxTtl: 86_400_000,
    permits: false,
    push: false,
    shared: true,
    once: false,
    minHold: false,
    expiry: false,
  };

  readonly #session: Session;
  readonly #tables: Tables;
  readonly #sql: ReturnType<typeof sessionStatementsFor>;
  readonly #sweeper: Sweeper;
  readonly #time = new ServerTime();
  /** A session may lock what it has locked already: that two of one process do not is seen to here. */
  readonly #held = new Map<string, Held>();
  readonly #oneByOne = new OneByOne();
  readonly #onGone = new Set<(token: string) => void>();

  constructor(
    connection: string | PoolConfig | Pool | undefined,
    options: PostgresAdvisoryLeaseStoreOptions = {},
  ) {
    assertConnection('PostgresAdvisoryLeaseStore', connection);
    const { table, createTable, fenceRetention } = withDefaults(options, {
      table: 'nestjs_lease_session',
      createTable: true,
      fenceRetention: '24h',
    });
    const names = tableOf(table);
    const retention = micros(parseDuration(fenceRetention, 'fenceRetention', { min: 1_000 }));
    this.#sql = sessionStatementsFor(names);
    this.#session = new Session(
      () => clientFor(connection!),
      () => {
        const gone = [...this.#held.values()];
        this.#held.clear();
        this.#time.forget();
        for (const onGone of this.#onGone) for (const { token } of gone) onGone(token);
      },
    );
    this.#tables = new Tables(
      this.#session,
      names.name,
      createTable ? createSessionSql(names) : undefined,
    );
    this.#sweeper = new Sweeper(async (atMost) => {
      const [row] = await this.#ask(this.#sql.sweep, [atMost, retention]);
      return Number(row?.['most']);
    });
  }

  async open(): Promise<void> {
    this.#session.open();
    await this.#learnTime(performance.now() + PATIENCE);
  }

  async acquire(claim: Claim): Promise<Grant | Refusal> {
    if (claim.permits !== 1) throw new RangeError(NO_PERMITS(this.name));
    if (claim.once !== undefined) throw new RangeError(NOT_OF_THIS_STORE('once', this.name));
    const until = performance.now() + claim.patience;
    return this.#oneByOne.run(claim.key, async () => {
      const held = this.#held.get(claim.key);
      if (held === undefined) return this.#claim(claim, until);
      if (held.token !== claim.token) {
        return { granted: false, reason: 'held', ...waitOf(held.until - performance.now()) };
      }
      const [outcome] = await this.renew([claim]);
      if (outcome !== 'renewed') return this.#claim(claim, until);
      return { granted: true, fence: Number(held.fence) };
    });
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    const asked = holds.flatMap((hold) => {
      const held = this.#held.get(hold.key);
      return held?.token === hold.token ? [{ hold, held }] : [];
    });
    // A session that is gone has let go of everything, and nothing needs to be asked.
    if (asked.length === 0) return holds.map(() => 'gone');
    const since = performance.now();
    const locks = await this.#renew(asked);
    return holds.map(({ key, token, ttl }) => {
      const held = this.#held.get(key);
      if (held?.token !== token) return 'gone';
      if (!locks.has(lockId('session', key))) {
        this.#held.delete(key);
        return 'gone';
      }
      held.until = Math.max(held.until, since + ttl);
      return 'renewed';
    });
  }

  /** The locks that the session holds: none when it ended on the way. */
  async #renew(asked: { hold: Hold; held: Held }[]): Promise<Set<string>> {
    const { pid } = this.#session;
    const keys = asked.map(({ hold }) => hold.key);
    const fences = asked.map(({ held }) => held.fence);
    const ttls = asked.map(({ hold }) => micros(hold.ttl));
    this.#session.outlast(Math.max(...asked.map(({ hold }) => hold.ttl)));
    try {
      const [row] = await this.#ask(this.#sql.renew, [keys, fences, ttls]);
      if (typeof row?.['locks'] !== 'string') throw new Error(BAD_POSTGRES_ANSWER('renew'));
      const isSame = pid !== undefined && row['pid'] === pid && this.#session.pid === pid;
      return new Set(isSame ? row['locks'].split(',') : []);
    } catch (error) {
      if (this.#session.pid === pid) throw error;
      return new Set();
    }
  }

  async release({ key, token }: Hold, { keepFor = 0, done }: ReleaseHow): Promise<boolean> {
    if (keepFor > 0) throw new RangeError(NOT_OF_THIS_STORE('minHold', this.name));
    if (done !== undefined) throw new RangeError(NOT_OF_THIS_STORE('once', this.name));
    return this.#oneByOne.run(key, async () => {
      const held = this.#held.get(key);
      if (held?.token !== token) return false;
      const [row] = await this.#ask(this.#sql.release, [key, lockId('session', key), held.fence]);
      if (this.#held.get(key) === held) this.#held.delete(key);
      return row?.['freed'] === 'true';
    });
  }

  /** The end of the session is the end of all that it holds. */
  watchLoss(onGone: (token: string) => void): () => void {
    // A function of its own: the same may watch twice.
    const watcher = (token: string): void => onGone(token);
    this.#onGone.add(watcher);
    return () => void this.#onGone.delete(watcher);
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    const [row] = await this.#ask(this.#sql.inspect, [key]);
    return row === undefined ? null : toSessionRecord(row);
  }

  async *list({ prefix = '' }: { readonly prefix?: string } = {}): AsyncIterable<LeaseRecord> {
    let last: string | null = null;
    for (;;) {
      const rows: Row[] = await this.#ask(this.#sql.list, [prefix, last]);
      for (const row of rows) yield toSessionRecord(row);
      if (rows.length === 0) return;
      last = nextPage(rows, last);
    }
  }

  /** Ends the session, and with it everything that it holds. */
  async close(): Promise<void> {
    await this.#session.close();
  }

  async #claim(claim: Claim, until: number): Promise<Grant | Refusal> {
    for (;;) {
      if (performance.now() >= until) return tooLate();
      if (!this.#time.isFreshAt(performance.now())) await this.#learnTime(until);
      const row = await this.#tryLock(claim, until);
      try {
        const answer = this.#understand(claim, row);
        if (answer !== 'late') return answer;
      } catch (error) {
        // The lock may be ours all the same, and nobody would give it back.
        this.#session.end();
        throw error;
      }
    }
  }

  #understand(claim: Claim, row: Row): Grant | Refusal | 'late' {
    const { got, seen, until: heldUntil, fence, pid } = row;
    this.#heard(row['now']);
    if (got === 'late') return got;
    if (got === 'true') return this.#granted(claim, fence, pid);
    if (got !== 'false') throw new Error(BAD_POSTGRES_ANSWER('acquire'));
    const left = (Number(heldUntil) - Number(seen)) / 1_000;
    return { granted: false, reason: 'held', ...waitOf(left) };
  }

  async #tryLock({ key, token, ttl, instance }: Claim, until: number): Promise<Row> {
    const lock = lockId('session', key);
    const deadline = this.#time.deadlineAt(until) * 1_000;
    this.#session.outlast(ttl);
    const values = [key, lock, micros(ttl), ownerPrefix(token), instance, deadline];
    try {
      const [row] = await this.#tables.ask(this.#sql.claim, values, until, [token]);
      return row ?? {};
    } catch (error) {
      // The lock outlives a statement that failed after it took it.
      if (this.#session.pid !== undefined) {
        await this.#ask(this.#sql.unlock, [lock]).catch(() => this.#session.end());
      }
      throw error;
    }
  }

  #granted({ key, token, ttl }: Claim, text: unknown, pid: unknown): Grant {
    const fence = fenceOf(text);
    if (pid !== this.#session.pid) throw new Error(SESSION_LOST());
    this.#held.set(key, { token, fence: String(fence), until: performance.now() + ttl });
    this.#sweeper.now();
    return { granted: true, fence };
  }

  #ask(text: string, values: unknown[]): Promise<Row[]> {
    return this.#tables.ask(text, values, performance.now() + PATIENCE);
  }

  async #learnTime(until: number): Promise<void> {
    const [row] = await this.#tables.ask(this.#sql.open, [], until);
    this.#heard(row?.['now']);
  }

  #heard(now: unknown): void {
    this.#time.heard(Math.floor(microsOf(now) / 1_000));
  }
}

const tooLate = (): Refusal => ({
  granted: false,
  reason: 'unavailable',
  cause: new Error(POSTGRES_CLAIM_LATE()),
});

/** A holder that has said nothing for longer than it meant to may still be there: no telling when it will not. */
const waitOf = (ms: number): { retryAfterMs?: number } =>
  ms > 0 ? { retryAfterMs: Math.ceil(ms) } : {};

const micros = (ms: number): number => Math.ceil(ms * 1_000);
