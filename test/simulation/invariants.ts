import type { LeaseLostEvent, ReleaseOutcome } from '../../lib/lease/events.js';
import type { Lease } from '../../lib/lease/lease.js';
import type { StoreObserver } from './reference-store.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { SimulatedServer } from './simulated-store.js';
import type { Timeline } from './timeline.js';

/** A rule was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';

  constructor(
    readonly rule: number,
    what: string,
    at: number,
  ) {
    super(`rule ${rule}: ${what} (at ${at.toFixed(3)} ms)`);
  }
}

/** What the store did for one token. */
interface HoldRecord {
  readonly key: string;
  readonly token: string;
  fence: number;
  /** Of grants to the same token that a fault undid. */
  readonly earlierFences: readonly number[];
  readonly grantedAt: number;
  /** In the store now. */
  alive: boolean;
  /** Until when the key is busy on its account; real time. */
  busyUntil: number;
  /** A fault made the store forget it: the store's promise is broken, not the engine's. */
  broken: boolean;
  /** Then: when its ttl would have ended it, real time. */
  brokenUntil: number;
  /** Granted again after it had ended: a request that came twice, or late. It frees itself by its ttl. */
  ghost: boolean;
  endedByRelease: boolean;
  lossEvents: number;
  readonly handles: Set<Handle>;
}

/** A lease in somebody's hands. */
export interface Handle {
  readonly process: SimulatedProcess;
  readonly lease: Lease;
  /** On its monotonic clock. */
  readonly acquiredAt: number;
  readonly permits: number;
  readonly minHold: number;
  readonly maxHold: number;
}

interface Debt {
  readonly handle: Handle;
  readonly record: HoldRecord;
  readonly by: number;
  readonly why: string;
}

/** Timers and messages are late by so much at most. */
const LAG = 3;
/** For how long after it was told so a process may believe that a key is held. */
const HEARSAY = 2_000;

/**
 * Sees both sides: what the store really did, and what every process believes. Never touches what it looks at:
 * `isHeld` would make a holder find its own loss, so what it would say is worked out from its parts; the scenario
 * asks the real one now and then, as a user does.
 */
export class Witness implements StoreObserver {
  violation: Violation | undefined;
  readonly seen = {
    grants: 0,
    losses: {} as Record<string, number>,
    outcomes: {} as Record<string, number>,
    refusals: {} as Record<string, number>,
    ghosts: 0,
    handOvers: 0,
    calls: { granted: 0, hints: 0, strays: 0 },
    renewals: 0,
  };
  readonly #holds = new Map<string, HoldRecord>();
  readonly #byKey = new Map<string, HoldRecord[]>();
  readonly #lastFence = new Map<string, number>();
  readonly #marks = new Map<string, { from: number; until: number }>();
  readonly #handles = new Set<Handle>();
  #debts: Debt[] = [];
  #forgotAt = -Infinity;
  server!: SimulatedServer;
  /** Told of every grant that is none again. */
  onGrant: (key: string, token: string) => void = () => {};

  constructor(private readonly timeline: Timeline) {}

  fail(rule: number, what: string): void {
    this.violation ??= new Violation(rule, what, this.timeline.now);
  }

  // — what the store did

  granted(key: string, token: string, fence: number, again: boolean): void {
    let record = this.#holds.get(token);
    if (again && record !== undefined) {
      if (record.fence !== fence) this.fail(2, `${token} was granted again with another fence`);
      return;
    }
    this.seen.grants++;
    this.onGrant(key, token);
    if (fence <= (this.#lastFence.get(key) ?? 0)) this.fail(8, `the fence of ${key} did not grow`);
    this.#lastFence.set(key, fence);
    this.#checkMinHold(key);
    // A request that is sent again after a fault starts afresh, as long as nobody was given the first grant.
    if (record !== undefined && record.handles.size > 0) {
      record.alive = true;
      record.ghost = true;
      record.fence = fence;
      record.busyUntil = Infinity;
      this.seen.ghosts++;
      return;
    }
    record = {
      key,
      token,
      fence,
      earlierFences: record === undefined ? [] : [...record.earlierFences, record.fence],
      grantedAt: this.timeline.now,
      alive: true,
      busyUntil: Infinity,
      broken: false,
      brokenUntil: -Infinity,
      ghost: false,
      endedByRelease: false,
      lossEvents: 0,
      handles: new Set(),
    };
    this.#holds.set(token, record);
    const others = this.#byKey.get(key);
    if (others === undefined) this.#byKey.set(key, [record]);
    else others.push(record);
  }

  prolonged(token: string): void {
    this.seen.renewals++;
    this.#holds.get(token)!.alive = true;
    this.#debts = this.#debts.filter(({ record }) => record.token !== token);
  }

  ended(token: string, by: 'release' | 'expiry' | 'fault', until: number): void {
    const record = this.#holds.get(token)!;
    const end = this.server.toReal(until);
    record.alive = this.server.data.holds(token);
    record.busyUntil = Math.max(this.timeline.now, by === 'fault' ? 0 : end);
    if (by === 'fault') {
      record.broken = true;
      record.brokenUntil = end;
    }
    record.endedByRelease = by === 'release';
    // rule 4: told before the store could grant it to another; after a fault, by the time it would have ended
    for (const handle of record.handles) this.#owe(handle, record, by);
  }

  #owe(handle: Handle, record: HoldRecord, end: string): void {
    const by = Math.max(this.timeline.now, record.brokenUntil);
    this.#debts.push({ handle, record, by, why: `was not told before its ${end}` });
  }

  /** Its process was just told that the store has no such holder: that is loss at once (rule 6). */
  heardGone(token: string): void {
    const record = this.#holds.get(token);
    if (record === undefined || record.alive) return;
    // Looked at when the next thing happens: what follows from the answer has happened by then.
    const by = this.timeline.now + Number.EPSILON * 1e6;
    for (const handle of record.handles) {
      this.#debts.push({ handle, record, by, why: 'was not told when its renewal was answered' });
    }
  }

  marked(key: string, once: string, until: number): void {
    this.#marks.set(`${key} ${once}`, {
      from: this.timeline.now,
      until: this.server.toReal(until),
    });
  }

  called(isGrant: boolean): void {
    this.seen.calls[isGrant ? 'granted' : 'hints']++;
  }

  handedOver(): void {
    this.seen.handOvers++;
  }

  forgot(): void {
    this.#marks.clear();
    this.#forgotAt = this.timeline.now;
  }

  // — what the processes were given

  acquired(handle: Handle, once: string | undefined): void {
    this.#handles.add(handle);
    for (const { hold, fence } of handle.lease.holdings) {
      const record = this.#holds.get(hold.token);
      if (record === undefined) {
        this.fail(1, `${hold.key} was given out although the store granted nothing`);
        continue;
      }
      record.handles.add(handle);
      // The answer to the first of two requests, of which the fault undid the first.
      if (record.earlierFences.includes(fence)) record.ghost = record.broken = true;
      if (record.broken) this.#owe(handle, record, 'fault');
      if (fence !== record.fence && !record.ghost) this.fail(8, `${hold.key} has a foreign fence`);
      const mark = once === undefined ? undefined : this.#marks.get(`${hold.key} ${once}`);
      if (mark && mark.from < record.grantedAt && record.grantedAt < mark.until) {
        this.fail(9, `${hold.key} was granted although "${once}" is done`);
      }
    }
    this.#overlaps();
  }

  lostEvent(event: LeaseLostEvent, namespace: string): void {
    this.seen.losses[event.reason] = (this.seen.losses[event.reason] ?? 0) + 1;
    const records = this.#byKey.get(`${namespace}/${event.key}`) ?? [];
    const record = records.find(({ fence }) => fence === event.fence);
    if (record !== undefined && ++record.lossEvents > 1) {
      this.fail(5, `${record.token} was lost twice`);
    }
  }

  released(handle: Handle, outcome: ReleaseOutcome): void {
    this.seen.outcomes[outcome] = (this.seen.outcomes[outcome] ?? 0) + 1;
    for (const holding of handle.lease.holdings) {
      const record = this.#holds.get(holding.hold.token);
      // Of several handles on one holding, the last to be given back is the one that counts.
      if (record === undefined || outcome !== 'released' || holding.state !== 'released') continue;
      if (record.lossEvents > 0) this.fail(7, `${record.token} was both released and lost`);
      if (record.alive && !record.ghost && this.#forgotAt < record.grantedAt) {
        this.fail(7, `${record.token} is in the store after its release`);
      }
    }
  }

  /** A run of a unit of work succeeded and gave its lease back: it is remembered. */
  done(handle: Handle, once: string): void {
    for (const { hold } of handle.lease.holdings) {
      const record = this.#holds.get(hold.token)!;
      if (record.broken || this.#forgotAt >= record.grantedAt) continue;
      if (!this.#marks.has(`${hold.key} ${once}`)) {
        this.fail(9, `"${once}" of ${hold.key} succeeded and is not remembered`);
      }
    }
  }

  refused(reason: string, qualified: readonly string[], since: number): void {
    this.seen.refusals[reason] = (this.seen.refusals[reason] ?? 0) + 1;
    if (reason !== 'held') return;
    const wasHeld = qualified.some((key) =>
      this.#byKey.get(key)?.some(({ busyUntil }) => busyUntil >= since - HEARSAY),
    );
    if (!wasHeld) this.fail(9, `${qualified.join(' + ')} was called held and nobody held it`);
  }

  // — what must be true at any time

  /** Called whenever time has passed and whenever something has happened. */
  look(): void {
    if (this.#debts.length > 0) this.#collect();
    for (const handle of this.#handles) {
      const { process, lease } = handle;
      if (process.crashed || (lease.isReleased && !lease.holdings.some(isOpen))) {
        this.#handles.delete(handle);
        continue;
      }
      if (!process.isAwake) continue;
      if (trusts(handle)) this.#checkTrust(handle);
      const overdue = process.now() - handle.acquiredAt - handle.maxHold;
      if (overdue > LAG && !isTold(handle) && !this.#isExcused(handle)) {
        this.fail(4, `${lease.key} is held for longer than maxHold`);
      }
    }
  }

  /** A process says that it holds the lease. */
  claims(handle: Handle): void {
    this.#checkTrust(handle);
  }

  #checkTrust(handle: Handle): void {
    for (const { hold } of handle.lease.holdings) {
      const record = this.#holds.get(hold.token);
      if (record === undefined || record.broken) continue;
      if (!record.alive)
        this.fail(3, `${hold.token} trusts ${hold.key}, which the store took back`);
    }
    if (handle.process.now() > handle.acquiredAt + handle.maxHold) {
      this.fail(4, `${handle.lease.key} is trusted beyond maxHold`);
    }
  }

  /** Rule 1, from the holders' side: those who trust the same key now. */
  #overlaps(): void {
    const trusted = new Map<string, Map<string, number>>();
    for (const handle of this.#handles) {
      if (!handle.process.isAwake || !trusts(handle)) continue;
      for (const { hold } of handle.lease.holdings) {
        if (this.#holds.get(hold.token)?.broken !== false) continue;
        const holders = trusted.get(hold.key) ?? new Map<string, number>();
        trusted.set(hold.key, holders.set(hold.token, hold.permits));
      }
    }
    for (const [key, holders] of trusted) {
      const most = [...holders.values()].some((permits) => permits === 1)
        ? 1
        : Math.max(...holders.values());
      if (holders.size > most) this.fail(1, `${key} has ${holders.size} owners, not ${most}`);
    }
  }

  #collect(): void {
    this.#debts = this.#debts.filter(({ handle, record, by, why }) => {
      if (handle.process.crashed || isTold(handle)) return false;
      if (this.timeline.now < by || this.#isExcused(handle)) return true;
      if (record.alive) return false;
      this.fail(4, `${record.token}, holder of ${record.key}, ${why}`);
      return false;
    });
  }

  /** Asleep, or awake for too short a time: a suspension is found at the next look, once in a margin. */
  #isExcused({ process, lease }: Handle): boolean {
    if (!process.isAwake) return true;
    const grace = process.wasSuspended ? (lease.ttl / 6) * 1.02 + LAG : LAG;
    return this.timeline.now < process.wokeAt + grace;
  }

  /** A release that was asked for keeps the key taken until `minHold` is over. */
  #checkMinHold(key: string): void {
    const previous = this.#byKey.get(key)?.at(-1);
    if (previous === undefined || previous.broken || previous.lossEvents > 0) return;
    if (this.#forgotAt >= previous.grantedAt || previous.ghost) return;
    for (const { permits, minHold, lease } of previous.handles) {
      if (permits > 1 || !lease.isReleased || lease.holdings.length > 1) continue;
      // Its ttl may have ended it instead: then the store was never asked to keep it.
      if (!previous.endedByRelease) continue;
      if (this.timeline.now < previous.grantedAt + minHold * 0.98 - LAG) {
        this.fail(7, `${key} was granted again before minHold was over`);
      }
    }
  }

  // — the end

  get left(): readonly string[] {
    return this.server.data.held.map(({ token, key }) => `${token} of ${key}`);
  }
}

const isOpen = (holding: { state: string }): boolean => holding.state === 'held';

/** The signal, or its own release: either way the holder knows. */
const isTold = ({ lease }: Handle): boolean => lease.isReleased || lease.signal.aborted;

/** What `isHeld` would say, without making it happen. */
function trusts({ lease, process }: Handle): boolean {
  return (
    !lease.isReleased &&
    lease.holdings.every(
      (holding) =>
        holding.state === 'held' &&
        holding.trust.ended === undefined &&
        process.now() < holding.maxHoldAt,
    )
  );
}
