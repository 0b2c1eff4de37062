import type { LeaseStore, ReleaseHow } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { LeaseEvents, ReleaseOutcome } from './events.js';
import type { Holding } from './holding.js';
import { patienceFor, withPatience } from './patience.js';

const TRIES = 2;

/** Gives back what is held: once, quietly, and never somebody else's (rule 7). */
export class Releaser {
  constructor(
    private readonly store: LeaseStore,
    private readonly agenda: Agenda,
    private readonly events: LeaseEvents,
    private readonly onFreed: (qualified: string) => void,
  ) {}

  /** One handle less. The last one out releases. */
  async letGo(holding: Holding, minHold = holding.options.minHold): Promise<ReleaseOutcome> {
    if (--holding.uses > 0) return holding.isHeld ? 'released' : 'lost';
    if (!holding.beginRelease()) return 'lost';
    this.agenda.cancel(holding);
    // A renewal that overtook its release would be answered for a key that is not ours any more (rule 7).
    await holding.renewing;
    const outcome = await this.#release(holding, minHold);
    holding.endRelease();
    this.onFreed(holding.hold.key);
    const { key, fence, heldMs } = holding;
    this.events.emit({ type: 'released', key, fence, heldMs, outcome });
    return outcome;
  }

  async #release(holding: Holding, minHold: number): Promise<ReleaseOutcome> {
    const { once, remember } = holding.options;
    for (let tries = 1; tries <= TRIES; tries++) {
      const keepFor = minHold - holding.heldMs;
      const how: ReleaseHow = {
        ...(keepFor > 0 ? { keepFor } : {}),
        ...(once !== undefined && holding.succeeded ? { done: { once, remember } } : {}),
      };
      try {
        const freed = await withPatience(this.agenda, patienceFor(holding.ttl), () =>
          this.store.release(holding.hold, how),
        );
        if (freed === true) return 'released';
        // After a try without an answer, "not yours" may only mean that the first one worked.
        if (freed === false) return tries === 1 ? 'lost' : 'unknown';
      } catch {
        // Tried once more, then left to the ttl.
      }
    }
    return 'unknown';
  }
}
