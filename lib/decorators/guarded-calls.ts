import { Injectable, Logger, StreamableFile } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { FenceGates, type GateReference } from '../fencing/fence-gates.js';
import { GATE_NOT_USED } from '../lease.messages.js';
import type { Lease } from '../lease/lease.js';

/** A call of a method that writes through a gate. */
export interface GuardedCall {
  /** What `@Guarded()` is. */
  readonly handle: object;
  /** Passes its result on, and says so if the gate was never asked. */
  ended<T>(result: T): T;
}

/** Gives `fenced` methods their gates, and finds those that forget to use them. */
@Injectable()
export class GuardedCalls {
  readonly #logger = new Logger('Lease');
  readonly #warned = new Set<string>();

  constructor(private readonly gates: FenceGates) {}

  begin(gate: GateReference, lease: Lease, label: string): GuardedCall {
    let isUsed = false;
    const handle = this.gates.resolve(gate, label).under(lease, () => {
      isUsed = true;
    });
    return {
      handle,
      ended: (result) => {
        if (!isUsed && !goesOn(result)) this.#warn(label);
        return result;
      },
    };
  }

  /** Once for each method: it says something of the code, not of the call. */
  #warn(label: string): void {
    if (process.env['NODE_ENV'] === 'production' || this.#warned.has(label)) return;
    this.#warned.add(label);
    this.#logger.warn(GATE_NOT_USED(label));
  }
}

/** What it writes may be still to come. */
const goesOn = (result: unknown): boolean =>
  isObservable(result) || result instanceof StreamableFile;
