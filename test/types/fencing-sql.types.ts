import type { SqlEntityManager } from '@mikro-orm/postgresql';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Knex } from 'knex';
import type { Kysely, Transaction } from 'kysely';
import type { Client, Pool, PoolClient } from 'pg';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { fenceColumn, type Admitted } from 'nestjs-lease';
import type { PostgresFenceGate, SqlTransaction } from 'nestjs-lease/postgres';
import type { Prisma, PrismaClient } from '../fencing/sql/prisma-client.js';

/**
 * Nothing here is run: `tsc` reads it. A line under `@ts-expect-error` that compiles is an error of this file.
 */
interface Tables {
  ledger: { month: string };
}

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** A handle is taken as it is, and comes back as the same one, admitted. */
type Fits<Tx extends SqlTransaction> = Equal<Awaited<ReturnType<typeof admit<Tx>>>, Admitted<Tx>>;

const admit = <Tx extends SqlTransaction>(gate: PostgresFenceGate, tx: Tx) =>
  gate.admitIn(tx, 'ledger');

type Handles = [
  Fits<Client>,
  Fits<PoolClient>,
  Fits<EntityManager>,
  Fits<QueryRunner>,
  Fits<DataSource>,
  Fits<Prisma.TransactionClient>,
  Fits<PrismaClient>,
  Fits<Knex.Transaction>,
  Fits<Knex>,
  Fits<Transaction<Tables>>,
  Fits<Kysely<Tables>>,
  Fits<NodePgDatabase>,
  Fits<SqlEntityManager>,
  Fits<(text: string) => Promise<unknown[]>>,
];
export const everyHandleFits: Handles extends readonly true[] ? true : false = true;

/** What the library itself hands to a callback needs no annotation and no cast. */
export async function inferred(
  gate: PostgresFenceGate,
  dataSource: DataSource,
  prisma: PrismaClient,
  knex: Knex,
  kysely: Kysely<Tables>,
  drizzle: NodePgDatabase,
  em: SqlEntityManager,
): Promise<void> {
  await dataSource.transaction(async (manager) => {
    const admitted: Admitted<EntityManager> = await gate.admitIn(manager, 'ledger');
    await admitted.query('SELECT 1');
  });
  await prisma.$transaction(async (tx) => {
    const admitted: Admitted<Prisma.TransactionClient> = await gate.admitIn(tx, 'ledger');
    await admitted.ledger.create({ data: { month: '2026-11' } });
  });
  await knex.transaction(async (trx) => {
    const admitted: Admitted<Knex.Transaction> = await gate.admitIn(trx, 'ledger');
    await admitted('ledger').insert({ month: '2026-11' });
  });
  await kysely.transaction().execute(async (trx) => {
    const admitted: Admitted<Transaction<Tables>> = await gate.admitIn(trx, 'ledger');
    await admitted.insertInto('ledger').values({ month: '2026-11' }).execute();
  });
  await drizzle.transaction(async (tx) => {
    const admitted = await gate.admitIn(tx, 'ledger');
    await admitted.execute('SELECT 1');
    // @ts-expect-error no fence has passed through this one
    const forgotten: typeof admitted = tx;
    void forgotten;
  });
  await em.transactional(async (inner) => {
    const admitted: Admitted<SqlEntityManager> = await gate.admitIn(inner, 'ledger');
    await admitted.execute('SELECT 1');
  });
}

export function notAdmitted(
  client: PoolClient,
  manager: EntityManager,
  trx: Knex.Transaction,
): void {
  // @ts-expect-error no fence has passed through it
  const one: Admitted<PoolClient> = client;
  // @ts-expect-error nor through this
  const two: Admitted<EntityManager> = manager;
  // @ts-expect-error nor through this
  const three: Admitted<Knex.Transaction> = trx;
  void [one, two, three];
}

export async function noTransaction(gate: PostgresFenceGate, pool: Pool): Promise<void> {
  // @ts-expect-error sends nothing
  await gate.admitIn({}, 'ledger');
  // @ts-expect-error the name of one
  await gate.admitIn('BEGIN', 'ledger');
  // @ts-expect-error not there yet
  await gate.admitIn(pool.connect(), 'ledger');
}

export function counts(rowCount: number | null, numUpdatedRows: bigint, affected?: number): void {
  const column = fenceColumn();
  column.assertWritten(rowCount, 'ledger');
  column.assertWritten(numUpdatedRows, 'ledger');
  column.assertWritten(affected, 'ledger');
  // @ts-expect-error a count, not what was counted
  column.assertWritten([], 'ledger');
}
