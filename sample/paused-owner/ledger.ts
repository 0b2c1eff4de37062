import { MemoryFenceGate, type Lease } from 'nestjs-lease';

/** Stands for a table that all instances write to, and for the gate that keeps its marks beside it. */
export class Ledger {
  readonly #gate = new MemoryFenceGate();
  readonly #rows = new Map<string, string>();

  read(row: string): string | undefined {
    return this.#rows.get(row);
  }

  /** Takes whatever comes. */
  async write(row: string, text: string): Promise<void> {
    this.#rows.set(row, text);
  }

  /** Takes it from the newest owner only: in PostgreSQL `gate.admitIn(tx, row)`, in Redis `gate.set(row, text)`. */
  async writeGuarded(row: string, text: string, fence: Lease['fence']): Promise<void> {
    await this.#gate.admit(row, fence);
    this.#rows.set(row, text);
  }
}
