import type { Hold, LeaseStore, ReleaseHow } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { HandedOver } from './claimant.js';
import type { LeaseEvents, ReleaseOutcome } from './events.js';
import type { Holding } from './holding.js';
import { askPatiently, patienceFor } from './patience.js';
import type { UnderWay } from './under-way.js';

const TRIES = 2;
const PLAINLY: ReleaseHow = {};
const RELAXED: ReleaseHow = { relaxed: true };

export interface ReleaserParts {
  readonly store: LeaseStore;
  readonly agenda: Agenda;
  readonly events: LeaseEvents;
  readonly underWay: UnderWay;
  readonly onFreed: (qualified: string) => void;
  /** Gives a key to the next of this process in the same request, if somebody here waits for it. */
  readonly handOver: (hold: Hold, told: HandedOver) => boolean;
}

/** How a handle is let go: kept taken for its `minHold` unless said otherwise; relaxed when nobody waits for the answer. */
interface LettingGo {
  readonly minHold?: number;
  readonly isRelaxed?: boolean;
}

const AS_USUAL: LettingGo = {};

/** Gives back what is held: once, quietly, and never somebody else's (rule 7). */
export class Releaser {
  readonly #parts: ReleaserParts;
  readonly #underWay = new Map<string, Release>();

  constructor(parts: ReleaserParts) {
    this.#parts = parts;
  }

  /** The release of a key that is under way; nothing when none is. */
  releasing(qualified: string): { over(): Promise<void> } | undefined {
    return this.#underWay.get(qualified);
  }

  /** One handle less. The last one out releases; `tell` is told what came of it. */
  letGo(
    holding: Holding,
    tell: (outcome: ReleaseOutcome) => void,
    { minHold = holding.options.minHold, isRelaxed = false }: LettingGo = AS_USUAL,
  ): void {
    if (--holding.uses > 0) return tell(holding.isHeld ? 'released' : 'lost');
    if (!holding.beginRelease()) return tell('lost');
    const { agenda, underWay } = this.#parts;
    agenda.cancel(holding);
    underWay.begin();
    const release = new Release(this, holding, minHold, isRelaxed, tell);
    this.#underWay.set(holding.hold.key, release);
    // A renewal that overtook its release would be answered for a key that is not ours any more (rule 7).
    if (holding.renewing === undefined) this.send(release);
    else void holding.renewing.then(() => this.send(release));
  }

  send(release: Release): void {
    const { holding } = release;
    const { store, agenda, handOver } = this.#parts;
    const how = this.#how(release);
    const isFirst = ++release.tries === 1;
    const isPlain = how === PLAINLY || how === RELAXED;
    if (isFirst && isPlain && handOver(holding.hold, release)) return;
    const again = (): void => {
      if (release.tries < TRIES) this.send(release);
      // Left to the ttl.
      else this.end(release, 'unknown');
    };
    askPatiently(agenda, patienceFor(holding.ttl), () => store.release(holding.hold, how), {
      answered: (freed) => {
        if (freed === true) this.end(release, 'released');
        // After a try without an answer, "not yours" may only mean that the first one worked.
        else if (freed === false) this.end(release, isFirst ? 'lost' : 'unknown');
        else again();
      },
      failed: again,
    });
  }

  #how({ holding, minHold, isRelaxed }: Release): ReleaseHow {
    const { once, remember } = holding.options;
    const keepFor = minHold > 0 ? minHold - holding.heldMs : 0;
    const isDone = once !== undefined && holding.succeeded;
    if (keepFor <= 0 && !isDone) return isRelaxed ? RELAXED : PLAINLY;
    return {
      ...(keepFor > 0 ? { keepFor } : {}),
      ...(isDone ? { done: { once, remember } } : {}),
    };
  }

  end(release: Release, outcome: ReleaseOutcome, isHandedOver = false): void {
    const { holding } = release;
    const { events, onFreed, underWay } = this.#parts;
    if (this.#underWay.get(holding.hold.key) === release) this.#underWay.delete(holding.hold.key);
    holding.endRelease();
    if (!isHandedOver) onFreed(holding.hold.key);
    if (events.isObserved) {
      const { key, fence, heldMs } = holding;
      events.emit({ type: 'released', key, fence, heldMs, outcome });
    }
    release.end(outcome);
    underWay.end();
  }
}

/** One holding on its way back. */
class Release implements HandedOver {
  tries = 0;
  #isOver = false;
  #onOver: (() => void)[] | undefined;

  constructor(
    private readonly releaser: Releaser,
    readonly holding: Holding,
    readonly minHold: number,
    readonly isRelaxed: boolean,
    private readonly tell: (outcome: ReleaseOutcome) => void,
  ) {}

  freed(isFreed: boolean): void {
    this.releaser.end(this, isFreed ? 'released' : 'lost', true);
  }

  unknown(): void {
    this.releaser.send(this);
  }

  /** Resolves when it has come to its end, whichever. */
  over(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    return new Promise((resolve) => (this.#onOver ??= []).push(resolve));
  }

  end(outcome: ReleaseOutcome): void {
    this.#isOver = true;
    this.tell(outcome);
    for (const tell of this.#onOver ?? []) tell();
  }
}
