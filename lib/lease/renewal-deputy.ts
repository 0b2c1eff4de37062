import { NO_THREAD, THREAD_ENDED } from '../lease.messages.js';
import type { LeaseStore, StoreInThread } from '../stores/lease-store.js';
import type { Agenda } from './agenda.js';
import type { LeaseEvents } from './events.js';
import type { Holding } from './holding.js';
import type { Renewer } from './renewer.js';
import type { RenewalEvents } from './renewal-events.js';
import type { RenewalThread, ThreadKind } from './thread/renewal-thread.js';

/** How leases are to be renewed from a thread. */
export interface RenewInThread {
  readonly hungAfter: number;
  /** For tests: another thread than a worker. */
  readonly kind?: ThreadKind;
}

export interface RenewalDeputyParts {
  readonly store: LeaseStore;
  readonly agenda: Agenda;
  readonly renewer: Renewer<Holding>;
  readonly witness: RenewalEvents;
  readonly events: LeaseEvents;
}

/** Puts a thread in charge of renewals, and the renewer back when there is none. */
export class RenewalDeputy {
  readonly #started: Promise<void>;
  #thread: RenewalThread | undefined;

  constructor(options: RenewInThread, parts: RenewalDeputyParts) {
    const { store } = parts;
    const inThread = store.thread?.();
    if (inThread === undefined) throw new TypeError(NO_THREAD(store.name));
    this.#started = this.#start(options, inThread, parts);
  }

  /** Nothing is renewed any more. */
  leaveAll(): void {
    this.#thread?.leaveAll();
  }

  async stop(): Promise<void> {
    await this.#started;
    await this.#thread?.stop();
  }

  async #start(
    options: RenewInThread,
    inThread: StoreInThread,
    parts: RenewalDeputyParts,
  ): Promise<void> {
    this.#thread = await start(options, inThread, parts);
  }
}

async function start(
  { hungAfter, kind }: RenewInThread,
  store: StoreInThread,
  { agenda, renewer, witness, events }: RenewalDeputyParts,
): Promise<RenewalThread | undefined> {
  const onDeath = (holdings: readonly Holding[], cause: unknown): void => {
    renewer.deputy = undefined;
    for (const holding of holdings) renewer.plan(holding, holding.sentAt);
    events.warn(THREAD_ENDED(cause));
  };
  try {
    // Not loaded by those who do not ask for it.
    const { RenewalThread, worker } = await import('./thread/renewal-thread.js');
    const thread = new RenewalThread({
      kind: kind ?? worker,
      store,
      agenda,
      hungAfter,
      onRenewed: (holding) => {
        holding.failures = 0;
        witness.renewed(holding);
      },
      onFailed: (holding, error) => {
        holding.failures++;
        witness.failed(holding, error);
      },
      onDeath,
    });
    renewer.deputy = thread;
    return thread;
  } catch (error) {
    onDeath([], error);
    return undefined;
  }
}
