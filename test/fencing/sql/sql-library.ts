import { Injectable } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import {
  Fence,
  StaleFenceException,
  WithLease,
  fenceColumn,
  type Admitted,
  type FenceColumn,
} from 'nestjs-lease';
import { PostgresFenceGate, type SqlTransaction } from 'nestjs-lease/postgres';
import { startApp } from '../../support/nest-app.js';
import { startPostgres, type PostgresServer } from '../../support/postgres-server.js';
import { until } from '../../support/until.js';
import { aFence, aResource } from '../gate-suite.js';

/** What a library does in its own words. The examples of docs/fencing-sql.md are taken from these. */
export interface SqlLibrary<Tx extends SqlTransaction> {
  /** Its transaction: commits when the work resolves, rolls back when it rejects. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Adds an entry to a month; asks for a transaction that a fence has passed through. */
  enter(tx: Admitted<Tx>, month: string, fence: number): Promise<unknown>;
  /** The conditional update; how many rows it says it has written. */
  close(tx: Tx, month: string, column: FenceColumn): Promise<number | bigint | null | undefined>;
  /** What sends SQL in no transaction. */
  readonly outside: SqlTransaction;
  end(): Promise<unknown>;
}

export const SCHEMA = `
  CREATE TABLE ledger (month text PRIMARY KEY, closed boolean NOT NULL DEFAULT false, fence bigint NOT NULL DEFAULT 0);
  CREATE TABLE entries (at serial PRIMARY KEY, month text NOT NULL, fence bigint NOT NULL)`;

/** What the gate promises inside of the transactions of any library, on a real PostgreSQL. */
export function describeSqlLibrary<Tx extends SqlTransaction>(
  name: string,
  connect: (url: string) => SqlLibrary<Tx> | Promise<SqlLibrary<Tx>>,
): void {
  describe(`a fence gate in transactions of ${name}`, () => {
    let server: PostgresServer;
    let pool: Pool;
    let gate: PostgresFenceGate;
    let library: SqlLibrary<Tx>;

    beforeAll(async () => {
      server = await startPostgres();
      pool = new Pool({ connectionString: server.url });
      await pool.query(SCHEMA);
      gate = new PostgresFenceGate({ pool });
      library = await connect(server.url);
    }, 30_000);

    afterAll(async () => {
      await library?.end();
      await pool?.end();
      await server?.stop();
    });

    /** What was committed, in the order in which it was written. */
    const entriesOf = async (month: string): Promise<readonly number[]> => {
      const { rows } = await pool.query<{ fence: string }>(
        'SELECT fence FROM entries WHERE month = $1 ORDER BY at',
        [month],
      );
      return rows.map((row) => Number(row.fence));
    };

    const enter = (month: string, fence: number): Promise<void> =>
      library.transaction(async (tx) => {
        await library.enter(await gate.admitIn(tx, month, fence), month, fence);
      });

    it('what is written under an admitted fence is committed, and so is the mark', async () => {
      const month = aResource();
      const fence = aFence();
      await enter(month, fence);
      await enter(month, fence);
      expect(await entriesOf(month)).toEqual([fence, fence]);
      await expect(gate.admit(month, fence - 1)).rejects.toMatchObject({ highest: fence });
    });

    it('a stale fence is said to be one, and takes back what was written before it was found out', async () => {
      const month = aResource();
      const fence = aFence();
      await gate.admit(month, fence);
      const refused = library.transaction(async (tx) => {
        await library.enter(tx as Admitted<Tx>, month, fence - 1);
        await gate.admitIn(tx, month, fence - 1);
      });
      const refusal = await refused.catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(StaleFenceException);
      expect(refusal).toMatchObject({ resource: month, fence: fence - 1, highest: fence });
      expect(await entriesOf(month)).toEqual([]);
    });

    it('a stale owner that does not heed the exception commits nothing', async () => {
      const month = aResource();
      const fence = aFence();
      await gate.admit(month, fence);
      let refusal: unknown;
      const ended = library.transaction(async (tx) => {
        await library.enter(tx as Admitted<Tx>, month, fence - 1);
        refusal = await gate.admitIn(tx, month, fence - 1).catch((error: unknown) => error);
        await library.enter(tx as Admitted<Tx>, month, fence - 1).catch(() => undefined);
      });
      // Some say that it did not commit, and some do not notice.
      await ended.catch(() => undefined);
      expect(refusal).toBeInstanceOf(StaleFenceException);
      expect(await entriesOf(month)).toEqual([]);
    });

    it('a newer owner waits for the one before it, and an older one is refused after it', async () => {
      const month = aResource();
      const fence = aFence();
      let finish!: () => void;
      const first = new Promise<void>((resolve) => (finish = resolve));
      let isAdmitted = false;
      const before = library.transaction(async (tx) => {
        const admitted = await gate.admitIn(tx, month, fence);
        isAdmitted = true;
        await first;
        await library.enter(admitted, month, fence);
      });
      await until(() => isAdmitted);
      const after = enter(month, fence + 1);
      await until(async () => {
        const { rows } = await pool.query(
          `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH given%'`,
        );
        return rows.length > 0;
      });
      finish();
      await Promise.all([before, after]);
      await expect(enter(month, fence)).rejects.toMatchObject({ highest: fence + 1 });
      expect(await entriesOf(month)).toEqual([fence, fence + 1]);
    });

    it('many owners in a random order: who writes later never has a lower fence', async () => {
      const month = aResource();
      const fence = aFence();
      const order = Array.from({ length: 20 }, (_, i) => i).toSorted(() => Math.random() - 0.5);
      const outcomes = await Promise.allSettled(order.map((i) => enter(month, fence + i)));
      const refusals = outcomes.filter((outcome) => outcome.status === 'rejected');
      for (const { reason } of refusals) expect(reason).toBeInstanceOf(StaleFenceException);
      const entries = await entriesOf(month);
      expect(entries).toEqual(entries.toSorted((a, b) => a - b));
      expect(entries.at(-1)).toBe(fence + 19);
      expect(entries).toHaveLength(20 - refusals.length);
    });

    it('a rollback forgets the mark, and the error of the work is passed on as it is', async () => {
      const month = aResource();
      const fence = aFence();
      const own = new Error('of the work');
      const rolledBack = library.transaction(async (tx) => {
        await gate.admitIn(tx, month, fence + 10);
        throw own;
      });
      await expect(rolledBack).rejects.toBe(own);
      await expect(enter(month, fence)).resolves.toBeUndefined();
    });

    it('outside of a transaction it is an error', async () => {
      await expect(gate.admitIn(library.outside, aResource(), aFence())).rejects.toThrow(
        'outside of a transaction',
      );
    });

    it('a table that is missing is named, with what to do', async () => {
      const without = new PostgresFenceGate({ table: 'not_there' });
      const failed = library.transaction((tx) => without.admitIn(tx, aResource(), aFence()));
      await expect(failed).rejects.toThrow(`Run the SQL of postgresFenceSql('not_there')`);
    });

    it('the fence comes from the lease the code runs under, by itself', async () => {
      @Injectable()
      class Books {
        @WithLease((month: string) => `books:${month}`)
        async close(month: string, @Fence() fence?: number): Promise<number> {
          await library.transaction(async (tx) => {
            await library.enter(await gate.admitIn(tx, month), month, fence!);
          });
          return fence!;
        }
      }
      const app = await startApp({ providers: [Books] });
      // At once, so that one’s connection is waited for in the context of another.
      const months = Array.from({ length: 30 }, () => aResource());
      const fences = await Promise.all(months.map((month) => app.get(Books).close(month)));
      for (const [i, month] of months.entries()) {
        expect(await entriesOf(month)).toEqual([fences[i]]);
        await expect(enter(month, fences[i]! - 1)).rejects.toMatchObject({ highest: fences[i] });
      }
    });

    it('a conditional update tells by its count of rows that somebody newer was there', async () => {
      const month = aResource();
      const fence = aFence();
      await pool.query('INSERT INTO ledger (month) VALUES ($1)', [month]);
      const close = (by: number): Promise<void> =>
        library.transaction(async (tx) => {
          const column = fenceColumn(by);
          column.assertWritten(await library.close(tx, month, column), month);
        });
      await close(fence);
      await close(fence);
      await close(fence + 1);
      await expect(close(fence)).rejects.toBeInstanceOf(StaleFenceException);
      const { rows } = await pool.query('SELECT closed, fence FROM ledger WHERE month = $1', [
        month,
      ]);
      expect(rows).toEqual([{ closed: true, fence: String(fence + 1) }]);
    });
  });
}
