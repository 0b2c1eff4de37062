import type { Client, ClientConfig, Pool } from 'pg';
import { createAlone } from '../../stores/postgres/migration.js';
import { isCreatedMeanwhile } from '../../stores/postgres/postgres-errors.js';
import type { Table } from '../../stores/postgres/table.js';
import { forPeople } from './gate-errors.js';
import { createMarksSql } from './marks-sql.js';
import { firstRow, type Send } from './transaction-handle.js';

/** The table of marks, as what is there when it is first needed. */
export class MarksTable {
  #isThere = false;
  #creating: Promise<void> | undefined;

  constructor(
    private readonly pool: Pool,
    private readonly table: Table,
  ) {}

  /**
   * Looks with the eyes of who needs it: its search path is what counts, and a transaction has a connection already.
   */
  async ensure(send: Send): Promise<void> {
    if (this.#isThere) return;
    try {
      // No right to create is needed where it is there.
      const there = `SELECT (to_regclass('${this.table.leases}') IS NOT NULL)::text AS there`;
      if (firstRow(await send(there))?.['there'] !== 'true') await this.#createOnce();
      this.#isThere = true;
    } catch (error) {
      throw forPeople(error, this.table.name);
    }
  }

  #createOnce(): Promise<void> {
    this.#creating ??= this.#create().finally(() => (this.#creating = undefined));
    return this.#creating;
  }

  /**
   * By a connection of its own: a transaction of the user's could be rolled back, and those of the pool may all be in
   * transactions that wait for this.
   */
  async #create(): Promise<void> {
    const { Client, options } = this.pool as unknown as PoolParts;
    const client = new Client(options);
    // A connection that breaks fails its query; what else it says is nobody's business (rule 12).
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query(createAlone(createMarksSql(this.table.leases)));
    } catch (error) {
      if (!isCreatedMeanwhile(error)) throw error;
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/** What every Pool of pg has, and its types do not tell. */
interface PoolParts {
  readonly Client: typeof Client;
  readonly options: ClientConfig;
}
