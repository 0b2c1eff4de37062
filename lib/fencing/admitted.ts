declare const admitted: unique symbol;

/**
 * A handle through which a fence was admitted: what is written through it is written by the owner. Ask for it where you
 * write, and a caller that forgot the fence does not compile.
 *
 * @example
 * ```ts
 * class Ledger {
 *   close(tx: Admitted<PoolClient>, month: string) {
 *     return tx.query('UPDATE ledger SET closed = true WHERE month = $1', [month]);
 *   }
 * }
 *
 * await ledger.close(client, '2026-11');                                   // does not compile
 * await ledger.close(await gate.admitIn(client, 'ledger'), '2026-11');     // does
 * ```
 * @publicApi
 */
export type Admitted<Handle> = Handle & { readonly [admitted]: true };
