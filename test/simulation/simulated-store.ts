import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../../lib/stores/lease-store.js';
import type { Chance } from './chance.js';
import { ReferenceStore, type StoreObserver } from './reference-store.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { Timeline } from './timeline.js';

/** How bad the network is. Probabilities, each per message. */
export interface NetworkProfile {
  /** Milliseconds a message takes, on average. */
  readonly latency: number;
  /** A message that takes up to `tailMs`, and so overtakes or is overtaken. */
  readonly tail: number;
  readonly tailMs: number;
  readonly requestLost: number;
  readonly replyLost: number;
  readonly duplicated: number;
  /** The connection breaks: the caller gets an error, whatever becomes of the request. */
  readonly reset: number;
}

export const CALM: NetworkProfile = {
  latency: 0.5,
  tail: 0,
  tailMs: 0,
  requestLost: 0,
  replyLost: 0,
  duplicated: 0,
  reset: 0,
};

interface Watcher {
  readonly key: string;
  readonly process: SimulatedProcess;
  readonly onFree: () => void;
}

/** The one server, and the network before it. Everything that can happen to a message happens here, by chance. */
export class SimulatedServer {
  readonly data: ReferenceStore;
  readonly watchers = new Set<Watcher>();
  profile: NetworkProfile;
  requests = 0;
  #incarnation = 0;
  #down = false;
  #frozen: (() => void)[] | undefined;
  readonly #cutOff = new Set<SimulatedProcess>();

  constructor(
    readonly timeline: Timeline,
    readonly chance: Chance,
    readonly rate: number,
    profile: NetworkProfile,
    observer: StoreObserver,
    replicated: boolean,
  ) {
    this.profile = profile;
    this.data = new ReferenceStore(() => this.now(), observer, replicated);
  }

  /** Milliseconds of the server's own clock. */
  now(): number {
    return 50_000 + this.rate * this.timeline.now;
  }

  toReal(serverTime: number): number {
    return (serverTime - 50_000) / this.rate;
  }

  freeze(ms: number): void {
    if (this.#frozen !== undefined) return;
    this.#frozen = [];
    this.timeline.after(ms, () => this.thaw());
  }

  /** What came in the meantime is executed now, late. */
  thaw(): void {
    const waiting = this.#frozen ?? [];
    this.#frozen = undefined;
    for (const execute of waiting) execute();
  }

  restart(downMs: number, wipe: boolean): void {
    this.#incarnation++;
    this.#down = true;
    this.#frozen &&= [];
    this.watchers.clear();
    if (wipe) this.data.wipe();
    this.timeline.after(downMs, () => (this.#down = false));
  }

  failOver(lag: number): void {
    this.#incarnation++;
    this.watchers.clear();
    this.data.failOver(lag);
  }

  cutOff(process: SimulatedProcess, ms: number): void {
    this.#cutOff.add(process);
    this.timeline.after(ms, () => this.#cutOff.delete(process));
  }

  calmDown(): void {
    this.profile = CALM;
    this.#down = false;
    this.#cutOff.clear();
    this.thaw();
  }

  /** One request of `process` and its reply. May never settle, as on a half-open connection. */
  ask<T>(
    process: SimulatedProcess,
    execute: () => T,
    onAnswer: (answer: T) => void = () => {},
  ): Promise<T> {
    this.requests++;
    const { profile, chance, timeline } = this;
    const incarnation = this.#incarnation;
    return new Promise<T>((resolve, reject) => {
      // What comes first counts: the connection does not know the request any more after it.
      let over = false;
      const fail = (why: string): void =>
        process.deliver(() => {
          over = true;
          reject(new Error(why));
        });
      const reply = (answer: T): void => {
        if (chance.is(profile.replyLost) || this.#cutOff.has(process)) {
          if (chance.is(0.3)) timeline.after(this.#delay(), () => fail('connection reset'));
          return;
        }
        const hand = (): void => {
          if (over) return;
          over = true;
          resolve(answer);
          onAnswer(answer);
        };
        timeline.after(this.#delay(), () => process.deliver(hand));
      };
      const arrive = (): void => {
        if (this.#frozen !== undefined) {
          this.#frozen.push(arrive);
          return;
        }
        if (this.#down) {
          if (chance.is(0.8)) timeline.after(this.#delay(), () => fail('connection refused'));
          return;
        }
        // A proxy or a client that sends again may carry a request over to the next incarnation.
        if (incarnation !== this.#incarnation && chance.is(0.5)) {
          timeline.after(this.#delay(), () => fail('connection reset'));
          return;
        }
        reply(execute());
      };
      if (chance.is(profile.reset)) timeline.after(this.#delay(), () => fail('connection reset'));
      const lost = chance.is(profile.requestLost) || this.#cutOff.has(process);
      if (!lost) timeline.after(this.#delay(), arrive);
      else if (chance.is(0.3)) timeline.after(this.#delay(), () => fail('connection refused'));
      if (chance.is(profile.duplicated)) timeline.after(this.#delay(), arrive);
    });
  }

  /** Those who watch a key are told, if the message gets through. */
  tellFree(key: string): void {
    for (const { process, onFree, key: watched } of this.watchers) {
      if (watched !== key) continue;
      if (this.chance.is(this.profile.replyLost) || this.#cutOff.has(process)) continue;
      this.timeline.after(this.#delay(), () => process.deliver(onFree));
    }
  }

  #delay(): number {
    const { latency, tail, tailMs } = this.profile;
    if (this.chance.is(tail)) return this.chance.between(0, tailMs);
    return -Math.log(1 - this.chance.next()) * latency;
  }
}

/** What one process has of the store. */
export class SimulatedStore implements LeaseStore {
  readonly name = 'simulated';
  readonly limits;

  constructor(
    private readonly server: SimulatedServer,
    private readonly process: SimulatedProcess,
    push: boolean,
    private readonly onGone: (token: string) => void,
  ) {
    this.limits = { minTtl: 1, maxTtl: 86_400_000, permits: true, push, shared: true };
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    const { server } = this;
    const deadline = server.now() + claim.patience;
    return server.ask(this.process, () => server.data.acquire(claim, deadline));
  }

  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    return this.server.ask(
      this.process,
      () => this.server.data.renew(holds),
      (outcomes) =>
        outcomes.forEach((outcome, i) => outcome === 'gone' && this.onGone(holds[i]!.token)),
    );
  }

  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    return this.server.ask(this.process, () => {
      const freed = this.server.data.release(hold, how);
      if (freed && !how.keepFor) this.server.tellFree(hold.key);
      return freed;
    });
  }

  watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    const watcher: Watcher = { key, process: this.process, onFree };
    return this.server.ask(this.process, () => {
      this.server.watchers.add(watcher);
      return async () => void this.server.watchers.delete(watcher);
    });
  }

  async inspect(): Promise<LeaseRecord | null> {
    throw new Error('not simulated');
  }

  // oxlint-disable-next-line require-yield
  async *list(): AsyncIterable<LeaseRecord> {
    throw new Error('not simulated');
  }

  async close(): Promise<void> {}
}
