import type { Witness } from './invariants.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { NetworkProfile, SimulatedServer } from './simulated-store.js';
import type { Timeline } from './timeline.js';

/** Somebody who asks for keys, at once or by waiting. */
export interface Seeker {
  readonly process: SimulatedProcess;
  readonly keys: readonly string[];
  readonly waits: boolean;
  /** For one key alone, whatever was done under it before. */
  readonly plain: boolean;
  /** Real times. */
  readonly begunAt: number;
  endedAt: number;
  isTaken: boolean;
}

/** What a scenario allows to be said of waiting. */
export interface Troubles {
  readonly untroubled: boolean;
  readonly delivered: boolean;
  readonly line: boolean;
  readonly network: NetworkProfile;
}

/** Timers and requests in a row, a poll between them included, on a network without tricks. */
const SOON = 600;
/** The same without a poll. */
const SOON_IN_LINE = 150;
/** Clocks differ by two in a hundred at most. */
const DRIFT = 0.03;
/** The slowest network, by its mean, on which a request and its answer surely take less than {@link inFlight}. */
const QUICK = 1;
/** Messages that put somebody in line: to ask, to listen, to be told so, to ask again; and timers between them. */
const inFlight = (latency: number): number => 10 + 20 * latency;
/** To give back what nobody wants takes so long, with a request that is not late. */
const GIVEN_BACK = 80;

/** Sees who waits for what in all processes at once (rule 10). */
export class WaitingWitness {
  readonly #seekers: Seeker[] = [];
  readonly #tokens = new Map<string, Seeker>();
  /** Where a key was granted last. */
  readonly #lastAt = new Map<string, SimulatedProcess>();
  /** Since when a key is free although somebody waits for it. */
  readonly #idleSince = new Map<string, number>();
  /** Grants that nobody was there for any more. */
  readonly #strays = new Map<string, { readonly key: string; since: number }>();

  /** Those who asked to stand in line, and did not ask to leave it. */
  readonly #inLine = new Set<Seeker>();
  readonly #told = new Set<string>();
  /** Told of a key that nobody there wants any more, and not given back yet. */
  readonly #unwanted = new Set<string>();

  constructor(
    private readonly timeline: Timeline,
    private readonly server: SimulatedServer,
    private readonly witness: Witness,
    private readonly troubles: Troubles,
  ) {}

  seeks(
    process: SimulatedProcess,
    keys: readonly string[],
    how: { readonly waits: boolean; readonly plain: boolean },
  ): Seeker {
    const { now } = this.timeline;
    const seeker = { process, keys, ...how, begunAt: now, endedAt: Infinity, isTaken: false };
    this.#seekers.push(seeker);
    return seeker;
  }

  /** This is the token of its one acquisition. */
  asks(seeker: Seeker | undefined, token: string): void {
    if (seeker !== undefined) this.#tokens.set(token, seeker);
  }

  ended(seeker: Seeker, isTaken: boolean): void {
    if (isTaken && seeker.waits && seeker.keys.length === 1) this.#checkTurn(seeker);
    if (!isTaken && this.#inLine.has(seeker)) {
      this.witness.fail(10, `p${seeker.process.index} gave up a wait and did not leave the line`);
    }
    seeker.endedAt = this.timeline.now;
    seeker.isTaken = isTaken;
  }

  /** The store granted a key. */
  granted(key: string, token: string): void {
    const seeker = this.#tokens.get(token);
    if (seeker === undefined) return;
    if (seeker.endedAt < Infinity) this.witness.seen.calls.strays++;
    // Of a request that came twice nobody there knows: what it is granted frees itself by its ttl.
    this.#strays.set(token, { key, since: Infinity });
    if (this.troubles.line && this.troubles.untroubled) this.#checkLineOrder(key, seeker);
    this.#lastAt.set(key, seeker.process);
  }

  /** It knows by now that it has the key. */
  told(token: string): void {
    const stray = this.#strays.get(token);
    if (stray !== undefined) stray.since = this.timeline.now;
    const seeker = this.#tokens.get(token);
    if (seeker === undefined || this.#told.has(token)) return;
    this.#told.add(token);
    if (seeker.endedAt < Infinity && !seeker.isTaken) this.#unwanted.add(token);
  }

  enqueueSent(token: string): void {
    const seeker = this.#tokens.get(token);
    if (seeker !== undefined) this.#inLine.add(seeker);
  }

  releaseSent(token: string): void {
    this.#unwanted.delete(token);
    const seeker = this.#tokens.get(token);
    if (seeker !== undefined) this.#inLine.delete(seeker);
  }

  look(): void {
    for (const token of this.#unwanted) {
      this.witness.fail(2, `${token} was told that it has a key, and keeps it for nobody`);
    }
    if (this.troubles.untroubled) this.#checkIdle();
    if (this.troubles.delivered) this.#checkStrays();
  }

  /** A wait that was given up, or came to its end, left no place in line: for this key, or for any. */
  checkLine(key?: string): void {
    const crashed = (token: string): boolean => this.#tokens.get(token)?.process.crashed ?? true;
    for (const claim of this.server.data.line) {
      if (key !== undefined && claim.key !== key) continue;
      if (!crashed(claim.token)) this.witness.fail(10, `${claim.token} stands in line for ever`);
    }
  }

  /** First come, first served, among those of a process who wait for just this key. */
  #checkTurn(seeker: Seeker): void {
    const [key] = seeker.keys;
    const first = this.#waiting(key!).find(({ process }) => process === seeker.process);
    if (first !== seeker) this.witness.fail(10, `${key} went to somebody who came later`);
  }

  #waiting(key: string): Seeker[] {
    return this.#seekers.filter(
      ({ waits, keys, endedAt }) =>
        waits && endedAt === Infinity && keys.length === 1 && keys[0] === key,
    );
  }

  /** Nobody is overtaken in line by one of another process who came later. */
  #checkLineOrder(key: string, seeker: Seeker): void {
    if (!seeker.plain || this.troubles.network.latency > QUICK) return;
    const { now } = this.timeline;
    const inLine = new Set(this.server.data.line.map(({ token }) => this.#tokens.get(token)));
    for (const other of this.#waiting(key)) {
      if (other === seeker || other.process === seeker.process || !other.plain) continue;
      // Behind one of its own process, who lost the key and did not hand it over, it has yet to ask.
      if (this.#lastAt.get(key) === other.process && !inLine.has(other)) continue;
      // Its turn to speak for its process came when those before it were gone.
      const before = this.#seekers.filter(
        ({ process, keys, waits, begunAt }) =>
          process === other.process && waits && keys.includes(key) && begunAt <= other.begunAt,
      );
      const speaksSince = before.reduce(
        (latest, one) => (one === other ? latest : Math.max(latest, one.endedAt)),
        other.begunAt,
      );
      const slack = inFlight(this.troubles.network.latency) + DRIFT * (now - other.begunAt);
      if (speaksSince + slack < now && other.begunAt + slack < seeker.begunAt) {
        this.witness.fail(
          10,
          `${key} went to p${seeker.process.index}, which p${other.process.index} waited for before`,
        );
      }
    }
  }

  /** No key is free for long while somebody waits for it. */
  #checkIdle(): void {
    const { now } = this.timeline;
    const wanted = new Set(this.#seekers.flatMap((one) => (isWaiting(one) ? [one.keys[0]!] : [])));
    for (const key of this.#idleSince.keys()) {
      if (!wanted.has(key) || !this.server.data.isFree(key)) this.#idleSince.delete(key);
    }
    for (const key of wanted) {
      if (!this.server.data.isFree(key)) continue;
      const since = this.#idleSince.get(key) ?? now;
      this.#idleSince.set(key, since);
      if (now - since > this.#soon)
        this.witness.fail(10, `${key} is free, and somebody waits for it`);
    }
  }

  get #soon(): number {
    const { line, network } = this.troubles;
    return line && network.latency <= QUICK ? SOON_IN_LINE : SOON;
  }

  /** How late a message may be. */
  get #lateness(): number {
    const { tail, tailMs, duplicated } = this.troubles.network;
    return Math.max(tail > 0 ? tailMs : 0, duplicated > 0 ? 100 : 0);
  }

  /** What is granted to one who has gone is given back, and not left to its ttl. */
  #checkStrays(): void {
    for (const [token, { key, since }] of this.#strays) {
      const seeker = this.#tokens.get(token)!;
      if (!this.server.data.holds(token) || seeker.isTaken) this.#strays.delete(token);
      else if (seeker.endedAt < Infinity) {
        const idle = this.timeline.now - Math.max(since, seeker.endedAt);
        if (idle > GIVEN_BACK + this.#lateness) {
          this.witness.fail(10, `${token} has ${key}, which nobody there wants any more`);
        }
      }
    }
  }
}

const isWaiting = ({ waits, endedAt, keys, process }: Seeker): boolean =>
  waits && endedAt === Infinity && keys.length === 1 && !process.crashed;
