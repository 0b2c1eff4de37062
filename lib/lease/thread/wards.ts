import { MAIN_THREAD_HANGS } from '../../lease.messages.js';
import type { Hold, LeaseStore, RenewOutcome } from '../../stores/lease-store.js';
import { Agenda } from '../agenda.js';
import type { Clock } from '../clock.js';
import { Renewer } from '../renewer.js';
import type { Heartbeat } from './heartbeat.js';
import type { Charge, FromThread, ToThread } from './thread-messages.js';
import { TrustBoard } from './trust-board.js';
import { Ward, type WardKeeper } from './ward.js';

export interface WardsParts {
  readonly store: Pick<LeaseStore, 'name' | 'renew'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly heartbeat: Heartbeat;
  readonly hungAfter: number;
  readonly post: (message: FromThread) => void;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] };
const nothing = (): Mutable<FromThread> => ({ renewed: [], gone: [], failed: [], freed: [] });

/** All that a renewing thread does: renews what it is told to, by the rules of the other, and tells what came of it. */
export class Wards {
  readonly #board = new TrustBoard();
  readonly #wards = new Map<number, Ward>();
  readonly #agenda: Agenda;
  readonly #renewer: Renewer<Ward>;
  readonly #keeper: WardKeeper;
  readonly #parts: WardsParts;
  #mail = nothing();
  #isMailDue = false;

  constructor(parts: WardsParts) {
    this.#parts = parts;
    this.#agenda = new Agenda(parts.clock);
    this.#keeper = {
      clock: parts.clock,
      board: this.#board,
      due: (ward) => this.#renewer.due(ward),
      gone: (ward) => {
        this.#agenda.cancel(ward);
        this.#send('gone', ward.id);
      },
    };
    const store = { name: parts.store.name, renew: this.#renewIfAlive };
    this.#renewer = new Renewer<Ward>(store, this.#agenda, parts.random, {
      renewed: ({ id }) => this.#send('renewed', id),
      failed: ({ id }, error) => this.#send('failed', { id, error: toCloneable(error) }),
      // Of this thread; who works is in the other.
      lagging: () => {},
    });
  }

  hear({ sheets, charges, left }: ToThread): void {
    for (const sheet of sheets) this.#board.addSheet(sheet);
    for (const charge of charges) this.#tend(charge);
    for (const id of left) this.#leave(id);
  }

  /** A process that hangs loses its leases after a bound: what is not sent earns no trust. */
  readonly #renewIfAlive = (holds: readonly Hold[]): Promise<readonly RenewOutcome[]> => {
    const { store, heartbeat, hungAfter } = this.#parts;
    const { age } = heartbeat;
    if (age > hungAfter) return Promise.reject(new Error(MAIN_THREAD_HANGS(age)));
    return store.renew(holds);
  };

  #tend(charge: Charge): void {
    let ward = this.#wards.get(charge.id);
    if (ward === undefined) {
      ward = new Ward(this.#keeper, charge);
      this.#wards.set(charge.id, ward);
    } else {
      ward.heard(charge);
    }
    this.#renewer.plan(ward, charge.mono);
  }

  #leave(id: number): void {
    const ward = this.#wards.get(id);
    if (ward === undefined) return;
    this.#wards.delete(id);
    ward.leave();
    this.#agenda.cancel(ward);
    this.#send('freed', ward.place);
  }

  /** Together with all that comes of the same answer. */
  #send<Kind extends keyof FromThread>(kind: Kind, news: FromThread[Kind][number]): void {
    (this.#mail[kind] as unknown[]).push(news);
    if (this.#isMailDue) return;
    this.#isMailDue = true;
    queueMicrotask(() => {
      const mail = this.#mail;
      this.#mail = nothing();
      this.#isMailDue = false;
      this.#parts.post(mail);
    });
  }
}

/** Whatever a store rejects with: a function in it would end the thread. */
function toCloneable(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const { name, message, cause } = error;
  const copy = new Error(
    message,
    cause instanceof Error ? { cause: new Error(cause.message) } : {},
  );
  return Object.assign(copy, { name });
}
