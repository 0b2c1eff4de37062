import type { Pool } from 'pg';
import { GATE_POOL_IS_TAKEN } from '../../lease.messages.js';
import { createAlone } from '../../stores/postgres/migration.js';
import { within } from '../../stores/postgres/postgres-connection.js';
import { isCreatedMeanwhile } from '../../stores/postgres/postgres-errors.js';
import type { Table } from '../../stores/postgres/table.js';
import { forPeople } from './gate-errors.js';
import { createMarksSql } from './marks-sql.js';
import { firstRow, type Send } from './transaction-handle.js';

/** How long a connection is waited for by whoever may be the one that holds the last. */
const PATIENCE = 2_000;

/** The table of marks, as what is there when it is first needed. */
export class MarksTable {
  #isThere = false;
  #creating: Promise<void> | undefined;

  constructor(
    private readonly pool: Pool,
    private readonly table: Table,
    private readonly patience = PATIENCE,
  ) {}

  /**
   * Looks with the eyes of who needs it: its search path is what counts, and a transaction has a connection already.
   * All of a pool's can be in transactions that come here at once, and none of them would be given another.
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

  /** By a connection of its own: a transaction of the user's could be rolled back. */
  #createOnce(): Promise<void> {
    this.#creating ??= this.#create().finally(() => (this.#creating = undefined));
    return this.#creating;
  }

  async #create(): Promise<void> {
    const connecting = this.pool.connect();
    const taken = (): Error => new Error(GATE_POOL_IS_TAKEN(this.table.name, this.patience));
    const client = await within(this.patience, connecting, taken).catch((error: unknown) => {
      // One that comes too late goes back.
      connecting.then(
        (late) => late.release(),
        () => undefined,
      );
      throw error;
    });
    try {
      await client.query(createAlone(createMarksSql(this.table.leases)));
      client.release();
    } catch (error) {
      client.release(true);
      if (!isCreatedMeanwhile(error)) throw error;
    }
  }
}
