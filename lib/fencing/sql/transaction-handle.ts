import { BAD_TRANSACTION } from '../../lease.messages.js';

/**
 * An open transaction, by whatever library: a client of pg, a `QueryRunner` or `EntityManager` of TypeORM, the `tx` of
 * Prisma, Knex, Kysely or Drizzle, an `EntityManager` of MikroORM inside `transactional()`; or a function of yours that
 * sends a text in it and gives the rows.
 *
 * @publicApi
 */
export type SqlTransaction =
  | { query(text: string): Promise<unknown> }
  | { $queryRawUnsafe(text: string): Promise<unknown> }
  | { raw(text: string): PromiseLike<unknown> }
  | { executeQuery(query: never): Promise<unknown> }
  | { execute(text: string): PromiseLike<unknown> }
  | ((text: string) => PromiseLike<unknown>);

export type Send = (text: string) => PromiseLike<unknown>;

/**
 * How each of them sends a text, told by the method that only it has. Not by a class: nobody's package is imported for
 * it.
 */
const DIALECTS: readonly (readonly [method: string, send: (handle: never) => Send])[] = [
  // Prisma
  ['$queryRawUnsafe', (tx: Record<'$queryRawUnsafe', Send>) => (text) => tx.$queryRawUnsafe(text)],
  // Kysely, as its CompiledQuery.raw() does it
  [
    'executeQuery',
    (tx: { executeQuery(query: unknown): PromiseLike<unknown> }) => (text) =>
      tx.executeQuery({
        sql: text,
        parameters: [],
        query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
        queryId: { queryId: 'nestjs-lease' },
      }),
  ],
  // Drizzle, MikroORM
  ['execute', (tx: Record<'execute', Send>) => (text) => tx.execute(text)],
  // Knex, whose transaction is a function too
  ['raw', (tx: Record<'raw', Send>) => (text) => tx.raw(text)],
  // pg, TypeORM
  ['query', (tx: Record<'query', Send>) => (text) => tx.query(text)],
];

export function senderOf(transaction: unknown): Send {
  if (transaction !== null && ['object', 'function'].includes(typeof transaction)) {
    const handle = transaction as Record<string, unknown>;
    const dialect = DIALECTS.find(([method]) => typeof handle[method] === 'function');
    if (dialect !== undefined) return dialect[1](transaction as never);
    if (typeof transaction === 'function') return transaction as Send;
  }
  throw new TypeError(BAD_TRANSACTION(transaction));
}

/** The first row of an answer: of an array, or of an object that has one. */
export function firstRow(answer: unknown): Readonly<Record<string, unknown>> | undefined {
  const { rows = answer } = (answer ?? {}) as { rows?: unknown };
  return Array.isArray(rows) ? (rows[0] as Record<string, unknown> | undefined) : undefined;
}
