import type { LeaseEvents } from './events.js';
import type { Holding } from './holding.js';
import type { RenewalWitness } from './renewer.js';

/** Tells everybody how renewals of this process go, whoever makes them. */
export class RenewalEvents implements RenewalWitness<Holding> {
  constructor(private readonly events: LeaseEvents) {}

  renewed(holding: Holding): void {
    if (!this.events.all.observed) return;
    const { key, fence, remaining } = holding;
    this.events.emit({ type: 'renewed', key, fence, remainingMs: remaining });
  }

  failed(holding: Holding, error: unknown): void {
    const { key, fence, failures, remaining } = holding;
    this.events.emitTrouble({
      type: 'renewal-failed',
      key,
      fence,
      failures,
      remainingMs: remaining,
      error,
    });
  }

  lagging(holding: Holding, lateMs: number): void {
    const { key, fence, remaining } = holding;
    this.events.emitLag({ type: 'lagging', key, fence, lateMs, remainingMs: remaining });
  }
}
