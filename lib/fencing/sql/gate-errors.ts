import { GATE_NO_RIGHT, GATE_NO_TABLE } from '../../lease.messages.js';

interface Said {
  readonly code: unknown;
  readonly message: string;
}

/** What was said, from the outside in: every library has a wrapping of its own around the words of PostgreSQL. */
export function* saidBy(error: unknown): Generator<Said> {
  let each = error as Wrapping | null | undefined;
  for (let depth = 0; typeof each === 'object' && each !== null && depth < 8; depth++) {
    // Prisma keeps the words in an object that is no error.
    const { originalCode, originalMessage, code = originalCode, message = originalMessage } = each;
    yield { code, message: String(message) };
    each = each.cause ?? each.driverError ?? each.meta?.driverAdapterError;
  }
}

interface Wrapping {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: Wrapping;
  /** TypeORM */
  readonly driverError?: Wrapping;
  /** Prisma */
  readonly meta?: { readonly driverAdapterError?: Wrapping };
  readonly originalCode?: unknown;
  readonly originalMessage?: unknown;
}

/** What is wrong with the gate's own table, said so that it can be mended; any other error as it came (rule 13). */
export function forPeople(error: unknown, table: string): unknown {
  for (const { code, message } of saidBy(error)) {
    if (code === '42P01') return new Error(GATE_NO_TABLE(table), { cause: error });
    if (code === '42501') return new Error(GATE_NO_RIGHT(table, message), { cause: error });
  }
  return error;
}
