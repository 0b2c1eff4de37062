import type { Pool, PoolClient } from 'pg';
import {
  BAD_GATE_ANSWER,
  BAD_OPTION,
  GATE_NEEDS_POOL,
  GATE_NOT_COMMITTED,
  GATE_OUTSIDE_TRANSACTION,
} from '../../lease.messages.js';
import type { Duration } from '../../lease/duration.js';
import { assertKey } from '../../lease/key.js';
import { assertKnown } from '../../lease/resolve-options.js';
import { withDefaults } from '../../stores/postgres/options.js';
import { Sweeper } from '../../stores/postgres/sweeper.js';
import { tableOf, type Table } from '../../stores/postgres/table.js';
import type { Admitted } from '../admitted.js';
import { FenceGate, type GuardedGate, type Mark } from '../fence-gate.js';
import { checked, type FenceSource } from '../fence-source.js';
import { Retention } from '../retention.js';
import { forPeople } from './gate-errors.js';
import {
  admitText,
  createMarksSql,
  raiseText,
  refusalIn,
  retireText,
  WHICH_TRANSACTION,
} from './marks-sql.js';
import { MarksTable } from './marks-table.js';
import { firstRow, senderOf, type Send, type SqlTransaction } from './transaction-handle.js';

/**
 * @publicApi
 */
export interface PostgresFenceGateOptions {
  /**
   * For what the gate does outside of your transactions: creating its table, retiring marks, {@link FenceGate.admit} and
   * {@link PostgresFenceGate.transaction}. Never closed by the gate.
   */
  pool?: Pool;
  /**
   * The table of marks, or `schema.table`.
   * @default 'nestjs_fence'
   */
  table?: string;
  /**
   * Whether the table is created when the gate is first used. Needs a pool; without, run {@link postgresFenceSql}.
   * @default true with a pool
   */
  createTable?: boolean;
  /**
   * How long a resource that nobody writes to is remembered. A lease that is older than half of it cannot begin to
   * write to a resource that is not. `Infinity` keeps all marks, for fences that are no times.
   * @default '90d'
   */
  retention?: Duration;
}

/**
 * The gate with a fence in it.
 *
 * @publicApi
 */
export interface GuardedPostgres extends GuardedGate {
  /** As {@link PostgresFenceGate.admitIn}. */
  admitIn<Tx extends SqlTransaction>(transaction: Tx, resource: string): Promise<Admitted<Tx>>;
  /** As {@link PostgresFenceGate.transaction}. */
  transaction<T>(resource: string, work: (client: Admitted<PoolClient>) => Promise<T>): Promise<T>;
}

/**
 * Keeps stale owners from committing to a PostgreSQL database: one table of marks beside your own tables, asked in the
 * transaction that writes. For correctness: whatever the lease's own store forgot or promised twice.
 *
 * @example
 * ```ts
 * const gate = new PostgresFenceGate({ pool });
 *
 * await dataSource.transaction(async (manager) => {          // TypeORM; or Prisma, Knex, Kysely, Drizzle, MikroORM, pg
 *   await gate.admitIn(manager, `ledger:${month}`);          // the fence of the lease this code runs under
 *   await manager.update(Ledger, { month }, { closed: true });
 * });
 * ```
 * @publicApi
 */
export class PostgresFenceGate extends FenceGate {
  readonly #pool: Pool | undefined;
  readonly #table: Table;
  readonly #retention: Retention;
  readonly #sweeper: Sweeper;
  /** Unless it is created by somebody else. */
  readonly #own: MarksTable | undefined;

  constructor(options: PostgresFenceGateOptions = {}) {
    super();
    assertKnown(options ?? {}, { pool: true, table: true, retention: true, createTable: true });
    const { pool, ...others } = options ?? {};
    if (pool !== undefined && typeof pool?.connect !== 'function') {
      throw new TypeError(BAD_OPTION('pool', pool, 'a Pool of pg'));
    }
    const { table, retention, createTable } = withDefaults<Omit<PostgresFenceGateOptions, 'pool'>>(
      others,
      { table: 'nestjs_fence', retention: '90d', createTable: pool !== undefined },
    );
    this.#pool = pool;
    this.#table = tableOf(table);
    this.#retention = new Retention(retention);
    if (createTable && pool !== undefined) this.#own = new MarksTable(pool, this.#table);
    this.#sweeper = new Sweeper((atMost) => this.#retire(atMost));
  }

  /**
   * In an open transaction: admits the fence, and keeps the resource from every other owner until the transaction ends.
   * A rollback forgets it. A stale fence makes the transaction fail, also if nobody heeds the exception.
   *
   * @param transaction - of pg, TypeORM, Prisma, Knex, Kysely, Drizzle or MikroORM; or a function that sends a text
   * @param resource - what is written to, by any name of yours
   * @param fence - by default that of the lease this code runs under
   * @returns the transaction itself, as one that was admitted
   */
  async admitIn<Tx extends SqlTransaction>(
    transaction: Tx,
    resource: string,
    fence?: FenceSource,
  ): Promise<Admitted<Tx>> {
    const send = senderOf(transaction);
    const found = this.find(resource, fence);
    await this.#own?.ensure(send);
    let row: Readonly<Record<string, unknown>> | undefined;
    try {
      row = await this.#raiseBy(send, resource, found.fence);
    } catch (error) {
      const mark = refusalIn(error);
      if (mark === undefined) throw forPeople(error, this.#table.name);
      throw this.refuse(resource, found, mark);
    }
    if (row === undefined || String(row['fence']) !== String(found.fence)) {
      throw new Error(BAD_GATE_ANSWER());
    }
    if (row['in_transaction'] !== 'true') {
      // The clock cannot tell it: is the next statement in the same one?
      const next = firstRow(await send(WHICH_TRANSACTION));
      if (next?.['transaction'] !== row['transaction']) {
        throw new Error(GATE_OUTSIDE_TRANSACTION(resource));
      }
    }
    this.#sweeper.now();
    return transaction as Admitted<Tx>;
  }

  /**
   * A transaction of the pool that is admitted before it begins to work, committed when `work` resolves and rolled back
   * when it rejects.
   */
  async transaction<T>(
    resource: string,
    work: (client: Admitted<PoolClient>) => Promise<T>,
    fence?: FenceSource,
  ): Promise<T> {
    // What is wrong is told before a connection is taken for it.
    this.find(resource, fence);
    const client = await this.#poolFor('transaction').connect();
    // A connection that the server ends fails what is sent by it next; unheard, it would end the process too (rule 12).
    client.on('error', ignore);
    let isBroken = true;
    try {
      await client.query('BEGIN');
      const result = await work(await this.admitIn(client, resource, fence));
      // Of a transaction in which a statement failed, PostgreSQL makes a rollback, and no error.
      const { command } = await client.query('COMMIT');
      if (command !== 'COMMIT') throw new Error(GATE_NOT_COMMITTED(resource));
      isBroken = false;
      return result;
    } catch (error) {
      // Whatever it says, what passes through is the error of the work (rule 13).
      isBroken = await client.query('ROLLBACK').then(
        () => false,
        () => true,
      );
      throw error;
    } finally {
      client.release(isBroken);
      client.off('error', ignore);
    }
  }

  override under(fence: FenceSource, onUse: () => void = () => {}): GuardedPostgres {
    return {
      ...super.under(fence, onUse),
      admitIn: (transaction, resource) => {
        onUse();
        return this.admitIn(transaction, resource, fence);
      },
      transaction: (resource, work) => {
        onUse();
        return this.transaction(resource, work, fence);
      },
    };
  }

  /**
   * The statement itself, complete and without parameters, for whatever sends SQL: it fails when the fence is stale. Run
   * it first in the transaction that writes.
   */
  sql(resource: string, fence: number): string {
    assertKey(resource, 'resource');
    return admitText(this.#table.leases, this.#retention, resource, checked(fence));
  }

  /**
   * Deletes marks of resources that nobody has written to for the retention, and says how many. With a pool this happens
   * by itself, now and then.
   */
  async retire(transaction?: SqlTransaction): Promise<number> {
    let retired = 0;
    for (let last = RETIRE_AT_ONCE; last === RETIRE_AT_ONCE; retired += last) {
      last = await this.#retire(RETIRE_AT_ONCE, transaction);
    }
    return retired;
  }

  protected async raise(resource: string, fence: number): Promise<Mark> {
    const send = senderOf(this.#poolFor('admit'));
    await this.#own?.ensure(send);
    try {
      await this.#raiseBy(send, resource, fence);
      this.#sweeper.now();
      return { highest: fence };
    } catch (error) {
      const mark = refusalIn(error);
      if (mark === undefined) throw forPeople(error, this.#table.name);
      return mark;
    }
  }

  async #raiseBy(send: Send, resource: string, fence: number) {
    const raise = raiseText(this.#table.leases, this.#retention, resource, fence);
    return firstRow(await send(raise)) ?? firstRow(await send(this.sql(resource, fence)));
  }

  async #retire(atMost: number, transaction?: SqlTransaction): Promise<number> {
    if (transaction === undefined && this.#pool === undefined) return 0;
    const send = senderOf(transaction ?? this.#pool);
    return Number(firstRow(await send(retireText(this.#table.leases, atMost)))?.['retired'] ?? 0);
  }

  #poolFor(method: string): Pool {
    if (this.#pool === undefined) throw new Error(GATE_NEEDS_POOL(method));
    return this.#pool;
  }
}

const RETIRE_AT_ONCE = 1_000;
const ignore = (): void => {};

/**
 * The SQL that creates what a {@link PostgresFenceGate} needs, for your own migrations. May be run again.
 *
 * @publicApi
 */
export function postgresFenceSql(table = 'nestjs_fence'): string {
  return createMarksSql(tableOf(table).leases);
}
