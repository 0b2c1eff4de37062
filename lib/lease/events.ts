import { ReplaySubject, Subject } from 'rxjs';

/** @publicApi */
export type LossReason = 'expired' | 'taken' | 'suspended' | 'max-hold';

/** @publicApi */
export type RefusalReason = 'held' | 'done' | 'unavailable';

/** @publicApi */
export type ReleaseOutcome = 'released' | 'lost' | 'unknown';

/** What every event has. @publicApi */
export interface LeaseEventBase<Type extends string> {
  readonly type: Type;
  readonly key: string;
  readonly at: Date;
  /** The process it happened in. */
  readonly instance: string;
}

/** @publicApi */
export interface LeaseAcquiredEvent extends LeaseEventBase<'acquired'> {
  readonly fence: number;
  readonly ttl: number;
  /** Milliseconds from asking to having it. */
  readonly waitedMs: number;
}

/** @publicApi */
export interface LeaseRefusedEvent extends LeaseEventBase<'refused'> {
  readonly reason: RefusalReason;
  readonly retryAfterMs?: number;
  /** With `unavailable`: what the store or the connection said. */
  readonly error?: unknown;
}

/** @publicApi */
export interface LeaseRenewedEvent extends LeaseEventBase<'renewed'> {
  readonly fence: number;
  /** Milliseconds of trust after it. */
  readonly remainingMs: number;
}

/** A renewal got no answer it could use. The lease is still trusted; it is tried again while it is. @publicApi */
export interface LeaseRenewalFailedEvent extends LeaseEventBase<'renewal-failed'> {
  readonly fence: number;
  /** Failures since the last success. */
  readonly failures: number;
  readonly remainingMs: number;
  readonly error: unknown;
}

/**
 * The event loop was blocked for so long that the lease came near its end: it is held, but was looked after late.
 * At most once between two renewals.
 *
 * @publicApi
 */
export interface LeaseLaggingEvent extends LeaseEventBase<'lagging'> {
  readonly fence: number;
  /** Milliseconds after its time. */
  readonly lateMs: number;
  readonly remainingMs: number;
}

/** @publicApi */
export interface LeaseReleasedEvent extends LeaseEventBase<'released'> {
  readonly fence: number;
  readonly heldMs: number;
  readonly outcome: ReleaseOutcome;
}

/**
 * The end of trust before release. Whoever holds the lease has stopped being the owner.
 *
 * @publicApi
 */
export interface LeaseLostEvent extends LeaseEventBase<'lost'> {
  readonly fence: number;
  /**
   * `expired`: not renewed in time. `taken`: the store says it is not ours any more. `suspended`: the machine
   * slept. `max-hold`: held for as long as `maxHold` allows.
   */
  readonly reason: LossReason;
  readonly heldMs: number;
}

/**
 * A write came with a fence below one that its resource has seen, and was refused: its owner was not the owner any
 * more.
 *
 * @publicApi
 */
export interface StaleFenceEvent extends LeaseEventBase<'stale-fence'> {
  /** What was to be written to. `key` is that of the lease, where it is known, and else the resource too. */
  readonly resource: string;
  readonly fence: number;
  /** The highest fence that the resource has seen, where that is known. */
  readonly highest?: number;
}

/** @publicApi */
export interface ElectedEvent extends LeaseEventBase<'elected'> {
  readonly group: string;
  readonly fence: number;
}

/** @publicApi */
export interface DeposedEvent extends LeaseEventBase<'deposed'> {
  readonly group: string;
  readonly fence: number;
  readonly reason: LossReason | 'stepped-down' | 'unhealthy' | 'shutdown';
}

/**
 * Everything that happens to leases of this process. Metrics, logs and dashboards subscribe; the engine knows
 * none of them.
 *
 * @publicApi
 */
export type LeaseEvent =
  | LeaseAcquiredEvent
  | LeaseRefusedEvent
  | LeaseRenewedEvent
  | LeaseRenewalFailedEvent
  | LeaseLaggingEvent
  | LeaseReleasedEvent
  | LeaseLostEvent
  | StaleFenceEvent
  | ElectedEvent
  | DeposedEvent;

type WithoutCircumstances<Event> = Event extends LeaseEvent
  ? Omit<Event, 'at' | 'instance'>
  : never;

/** The one stream. Events are made only when somebody listens. */
export class LeaseEvents {
  readonly all = new Subject<LeaseEvent>();
  readonly lost = new Subject<LeaseLostEvent>();
  /** Renewals that failed: apart, because the log wants them always and the rest only on demand. */
  readonly troubles = new Subject<LeaseRenewalFailedEvent>();
  /** As {@link troubles}: the log wants them. */
  readonly lags = new Subject<LeaseLaggingEvent>();
  /** For the log alone: what no lease is to blame for. */
  readonly warnings = new ReplaySubject<string>(1);

  /** @param outside - calls subscribers: they are no part of the work that an event happens in */
  constructor(
    readonly instance: string,
    readonly wall: () => number,
    private readonly outside: (tell: () => void) => void,
  ) {}

  /** Whether anybody would hear it: what nobody does need not be said. */
  get isObserved(): boolean {
    return this.all.observed;
  }

  emit(happening: WithoutCircumstances<LeaseEvent>): void {
    if (this.all.observed) this.outside(() => this.all.next(this.#complete(happening)));
  }

  emitTrouble(happening: WithoutCircumstances<LeaseRenewalFailedEvent>): void {
    const event: LeaseRenewalFailedEvent = this.#complete(happening);
    this.outside(() => {
      this.all.next(event);
      this.troubles.next(event);
    });
  }

  emitLag(happening: WithoutCircumstances<LeaseLaggingEvent>): void {
    const event: LeaseLaggingEvent = this.#complete(happening);
    this.outside(() => {
      this.all.next(event);
      this.lags.next(event);
    });
  }

  warn(message: string): void {
    this.outside(() => this.warnings.next(message));
  }

  emitLost(happening: WithoutCircumstances<LeaseLostEvent>): LeaseLostEvent {
    const event: LeaseLostEvent = this.#complete(happening);
    this.outside(() => {
      this.all.next(event);
      this.lost.next(event);
    });
    return event;
  }

  #complete<Event extends LeaseEvent>(happening: object): Event {
    return { ...happening, instance: this.instance, at: new Date(this.wall()) } as Event;
  }

  complete(): void {
    this.all.complete();
    this.lost.complete();
    this.troubles.complete();
    this.lags.complete();
    this.warnings.complete();
  }
}
