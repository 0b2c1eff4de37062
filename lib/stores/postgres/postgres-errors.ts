import {
  NO_POSTGRES,
  POSTGRES_NO_RIGHT,
  POSTGRES_NO_TABLE,
  POSTGRES_READ_ONLY,
  POSTGRES_SAID,
} from '../../lease.messages.js';

const SQLSTATE = /^[0-9A-Z]{5}$/;

/** The server's own five characters, of an error that the server sent. */
export function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  // Those of Node, such as EPIPE, may have five letters too; a server names a severity.
  const isServers = typeof code === 'string' && SQLSTATE.test(code) && severity !== undefined;
  return isServers ? code : undefined;
}

export const isMissingTable = (error: unknown): boolean => sqlState(error) === '42P01';

/** Two that came in each other's way; nothing was done, and to ask again is all it needs. */
export const isCollision = (error: unknown): boolean =>
  ['40001', '40P01'].includes(sqlState(error) ?? '');

/** Somebody else created it at the same moment. */
export const isCreatedMeanwhile = (error: unknown): boolean =>
  ['42P07', '23505', '42710'].includes(sqlState(error) ?? '');

const isReadOnly = (error: unknown): boolean => sqlState(error) === '25006';

/**
 * The connection goes on after it: the statement failed, not the session. One to a replica is given up, which would
 * stay there for ever: by now the same name may lead to the primary.
 */
export function leavesUsable(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown };
  return sqlState(error) !== undefined && severity === 'ERROR' && !isReadOnly(error);
}

/**
 * An error for people. Made anew: the server's own may carry the parameters of a statement, and with them owner
 * tokens, in its context (rule 15).
 */
export function forPeople(error: unknown, table: string, secrets: readonly string[] = []): Error {
  const code = sqlState(error);
  if (code === undefined) return unreachable(error, secrets);
  const message = hide((error as Error).message, secrets);
  return Object.assign(new Error(sentence(code, message, table)), { code });
}

function sentence(code: string, message: string, table: string): string {
  switch (code) {
    case '25006':
      return POSTGRES_READ_ONLY();
    case '42P01':
      return POSTGRES_NO_TABLE(table);
    case '42501':
      return POSTGRES_NO_RIGHT(table, message);
    default:
      return POSTGRES_SAID(message, code);
  }
}

function unreachable(error: unknown, secrets: readonly string[]): Error {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const why = first instanceof Error ? first.message : String(first);
  const { code } = (first ?? {}) as { code?: unknown };
  // The text of a URL that cannot be read would be in it.
  const cause = new Error(code === 'ERR_INVALID_URL' ? 'Invalid URL' : hide(why, secrets));
  return new Error(NO_POSTGRES(), { cause });
}

const hide = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((shown, secret) => (secret ? shown.replaceAll(secret, '…') : shown), text);
