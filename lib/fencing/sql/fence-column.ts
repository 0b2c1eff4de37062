import { StaleFenceException } from '../../exceptions/stale-fence.exception.js';
import { BAD_FENCE_COLUMN, BAD_ROW_COUNT } from '../../lease.messages.js';
import { checked, findFence, type FenceSource } from '../fence-source.js';

/** A bare name, or one in the quotes of its database: which those are, only its user knows. */
const PART = /^(?:[A-Za-z_][\w$]{0,62}|"[^"\p{Cc}]{1,63}"|`[^`\p{Cc}]{1,63}`)$/u;

/**
 * Two pieces of SQL for a row that carries its fence in a column of its own.
 *
 * @publicApi
 */
export interface FenceColumn {
  /** `fence = 1790000000000000`, for SET. */
  readonly set: string;
  /** `fence <= 1790000000000000`, for WHERE. */
  readonly where: string;
  readonly fence: number;
  /**
   * Says how many rows the statement has written. None: throws `StaleFenceException`, because somebody newer owns the
   * row. A row that is not there cannot be told from that; insert it first.
   */
  assertWritten(rows: number | bigint | null | undefined, resource: string): void;
}

/**
 * The conditional update, for those who want the fence in the row itself: a `bigint` column, in any SQL database and
 * through any library. One statement checks and writes; it guards that row and nothing else.
 *
 * @param fence - by default that of the lease this code runs under
 * @param column - its name; `table.column`, and in the quotes of your database if it needs them
 *
 * @example
 * ```ts
 * const column = fenceColumn();
 * const { rowCount } = await client.query(
 *   `UPDATE ledger SET closed = true, ${column.set} WHERE month = $1 AND ${column.where}`, [month]);
 * column.assertWritten(rowCount, `ledger:${month}`);
 * ```
 * @publicApi
 */
export function fenceColumn(fence?: FenceSource, column = 'fence'): FenceColumn {
  const parts = typeof column === 'string' ? column.split('.') : [];
  if (parts.length === 0 || parts.length > 3 || !parts.every((part) => PART.test(part))) {
    throw new TypeError(BAD_FENCE_COLUMN(column));
  }
  const found = findFence(fence, `The column "${column}"`);
  const digits = String(checked(found.fence));
  return {
    set: `${parts.at(-1)} = ${digits}`,
    where: `${column} <= ${digits}`,
    fence: found.fence,
    assertWritten(rows, resource) {
      const count = typeof rows === 'bigint' ? Number(rows) : rows;
      if (!Number.isInteger(count) || count! < 0) throw new TypeError(BAD_ROW_COUNT(rows));
      if (count! > 0) return;
      found.events?.emit({
        type: 'stale-fence',
        key: found.key ?? resource,
        resource,
        fence: found.fence,
      });
      throw new StaleFenceException(resource, found.fence);
    },
  };
}
