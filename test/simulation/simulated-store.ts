import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseRecord,
  LeaseStore,
  OnTurn,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../../lib/stores/lease-store.js';
import type { Chance } from './chance.js';
import { ReferenceStore, type Ear, type StoreObserver } from './reference-store.js';
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
  /** A call to one in line that takes longer than most ttls. */
  readonly callLate?: number;
}

const CALL_LATE_MS = [100, 400, 1_200];
const SENT_AGAIN_MS = 100;

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

/** A connection by which a process is called. */
interface Listener extends Ear {
  readonly process: SimulatedProcess;
  /** It broke, as the process learns now. */
  closed(): void;
}

/** The one server, and the network before it. Everything that can happen to a message happens here, by chance. */
export class SimulatedServer {
  readonly data: ReferenceStore;
  readonly watchers = new Set<Watcher>();
  readonly listeners = new Set<Listener>();
  profile: NetworkProfile;
  requests = 0;
  #incarnation = 0;
  #down = false;
  #frozen: (() => void)[] | undefined;
  readonly #cutOff = new Set<SimulatedProcess>();
  /** A token was told, in its process, that it has the key. */
  onTold: (token: string) => void = () => {};
  /** A token may stand in line from now on. */
  onEnqueueSent: (token: string) => void = () => {};
  /** The release of a token was sent. */
  onReleaseSent: (token: string) => void = () => {};
  readonly #lastTo = new Map<SimulatedProcess, number>();
  readonly #lastFrom = new Map<SimulatedProcess, number>();

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
    this.#hangUp();
    if (wipe) this.data.wipe();
    this.timeline.after(downMs, () => (this.#down = false));
  }

  failOver(lag: number): void {
    this.#incarnation++;
    this.#hangUp();
    this.data.failOver(lag);
  }

  #hangUp(): void {
    this.watchers.clear();
    for (const listener of this.listeners) this.#breakOff(listener);
  }

  #breakOff(listener: Listener): void {
    if (!this.listeners.delete(listener)) return;
    this.timeline.after(this.#delay(), () => listener.process.deliver(() => listener.closed()));
  }

  /** A process is gone. Whether its connections are seen to be is up to its machine. */
  crashed(process: SimulatedProcess): void {
    if (this.chance.is(0.3)) return;
    this.timeline.after(this.#delay(), () => {
      for (const listener of this.listeners) {
        if (listener.process === process) this.listeners.delete(listener);
      }
    });
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
        timeline.after(this.#inOrder(this.#lastTo, process), () => process.deliver(hand));
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
      if (!lost) timeline.after(this.#inOrder(this.#lastFrom, process), arrive);
      else if (chance.is(0.3)) timeline.after(this.#delay(), () => fail('connection refused'));
      if (chance.is(profile.duplicated)) timeline.after(this.#delayAgain(), arrive);
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

  /** Calls one who waits in line, over a connection of its own. */
  call(listener: Listener, hear: () => void): void {
    const { chance, profile, timeline } = this;
    const { process } = listener;
    if (chance.is(profile.reset)) return this.#breakOff(listener);
    if (chance.is(profile.replyLost) || this.#cutOff.has(process)) return;
    const delay = (): number =>
      chance.is(profile.callLate ?? 0)
        ? chance.between(0, chance.pick(CALL_LATE_MS))
        : this.#delay();
    timeline.after(delay(), () => process.deliver(hear));
    if (chance.is(profile.duplicated)) timeline.after(delay(), () => process.deliver(hear));
  }

  /** A network without tricks keeps the order of what goes over one connection. */
  #inOrder(last: Map<SimulatedProcess, number>, process: SimulatedProcess): number {
    const delay = this.#delay();
    if (this.profile.tail > 0) return delay;
    const at = Math.max(this.timeline.now + delay, last.get(process) ?? 0);
    last.set(process, at);
    return at - this.timeline.now;
  }

  /** Of the second of two: whoever sent it again may have waited before. */
  #delayAgain(): number {
    return this.chance.is(0.5) ? this.#delay() : this.chance.between(0, SENT_AGAIN_MS);
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
  readonly enqueue?: (claim: Claim, onTurn: OnTurn) => Promise<Grant | Refusal>;
  readonly handOver?: (hold: Hold, next: Claim, onTurn: OnTurn) => Promise<HandOver>;
  readonly line: SimulatedLine;
  /** Tokens of which a release was sent. */
  readonly released = new Set<string>();

  constructor(
    private readonly server: SimulatedServer,
    private readonly process: SimulatedProcess,
    { push, line = false }: { readonly push: boolean; readonly line?: boolean | undefined },
    private readonly onGone: (token: string) => void,
  ) {
    this.limits = { minTtl: 1, maxTtl: 86_400_000, permits: true, push, shared: true };
    this.line = new SimulatedLine(server, process);
    if (!line) return;
    this.enqueue = (claim, onTurn) => {
      server.onEnqueueSent(claim.token);
      const ear = this.line.enter(claim, onTurn);
      const deadline = server.now() + claim.patience;
      return server.ask(process, () => server.data.acquire(claim, deadline, ear));
    };
    this.handOver = (hold, next, onTurn) => {
      this.released.add(hold.token);
      const ear = this.line.enter(next, onTurn);
      const deadline = server.now() + next.patience;
      return server.ask(process, () => server.data.handOver(hold, next, deadline, ear));
    };
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
    this.released.add(hold.token);
    this.server.onReleaseSent(hold.token);
    return this.server.ask(
      this.process,
      () => {
        const freed = this.server.data.release(hold, how);
        if (freed && !how.keepFor) this.server.tellFree(hold.key);
        return freed;
      },
      () => this.line.leave(hold.token),
    );
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

const AGAIN_AFTER = 10;
const IDLE_MS = 50;

/** Those of one process who wait in line, and the connection by which all of them are called. */
class SimulatedLine implements Listener {
  readonly #places = new Map<string, OnTurn>();
  /** A store may forget who left, and then gives back itself what is granted to nobody; or leave that to them. */
  readonly #forgets: boolean;
  /** As this process knows it. */
  #state: 'closed' | 'opening' | 'open' = 'closed';
  #connections = 0;

  constructor(
    private readonly server: SimulatedServer,
    readonly process: SimulatedProcess,
  ) {
    this.#forgets = process.index % 2 === 1;
  }

  get hears(): boolean {
    return this.server.listeners.has(this);
  }

  /** Nothing while it is not listened: who stands in line then is passed over. */
  enter({ token }: Claim, onTurn: OnTurn): Ear | undefined {
    this.#places.set(token, onTurn);
    if (this.#state === 'closed') this.#open();
    return this.#state === 'open' ? this : undefined;
  }

  leave(token: string): void {
    if (this.#forgets) this.#places.delete(token);
    if (this.#places.size > 0) return;
    this.server.timeline.after(this.server.chance.between(0, IDLE_MS), () => {
      if (this.#places.size > 0 || this.#state !== 'open') return;
      this.#state = 'closed';
      this.server.listeners.delete(this);
    });
  }

  call({ key, token, ttl, permits }: Claim, grant?: Grant): void {
    this.server.call(this, () => {
      if (grant !== undefined) this.server.onTold(token);
      const onTurn = this.#places.get(token);
      if (onTurn !== undefined) onTurn(grant);
      else if (grant !== undefined) this.#giveBack({ key, token, ttl, permits });
    });
  }

  closed(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#callAll();
    if (this.#places.size > 0) this.#open();
  }

  #open(): void {
    this.#state = 'opening';
    const { server, process } = this;
    const connection = ++this.#connections;
    const isStill = (): boolean => this.#state === 'opening' && this.#connections === connection;
    const listens = (): void => {
      if (!isStill()) return;
      this.#state = 'open';
      // What was released before told nobody.
      this.#callAll();
    };
    server.ask(process, () => void server.listeners.add(this), listens).catch(() => {});
    server.timeline.after(AGAIN_AFTER + 20 * server.profile.latency, () => {
      if (!isStill() || process.crashed) return;
      if (this.#places.size > 0) this.#open();
      else this.#state = 'closed';
    });
  }

  #callAll(): void {
    // Who is called may ask at once, and so take its place anew.
    const called = [...this.#places.values()];
    for (const onTurn of called) onTurn();
  }

  #giveBack(hold: Hold): void {
    const { server } = this;
    server.onReleaseSent(hold.token);
    server.ask(this.process, () => server.data.release(hold, {})).catch(() => {});
  }
}
