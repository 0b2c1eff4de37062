import { GATE_NO_RIGHT, GATE_NO_TABLE } from '../../lease.messages.js';

/** What is wrong with the gate's own table, said so that it can be mended; any other error as it came (rule 13). */
export function forPeople(error: unknown, table: string): unknown {
  for (let depth = 0, each = error; each instanceof Error && depth < 8; depth++) {
    const { code, driverError } = each as { code?: unknown; driverError?: unknown };
    if (code === '42P01') return new Error(GATE_NO_TABLE(table), { cause: error });
    if (code === '42501') return new Error(GATE_NO_RIGHT(table, each.message), { cause: error });
    each = each.cause ?? driverError;
  }
  return error;
}
