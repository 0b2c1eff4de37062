import type { Clock } from '../../../lib/lease/clock.js';
import { Leadership, type LeadershipOptions } from '../../../lib/election/leadership.js';
import type { DeposedEvent, ElectedEvent } from '../../../lib/lease/events.js';
import { LeaseEngine } from '../../../lib/lease/lease-engine.js';
import type { LeaseStore } from '../../../lib/stores/lease-store.js';
import { MemoryLeaseStore } from '../../../lib/stores/memory/memory-lease-store.js';
import { settle, VirtualClock } from '../../support/virtual-clock.js';

export const TTL = 1_000;
export const GRACE = 500;

/** A place with one clock and one store, in which processes run for leader. */
export class Constituency {
  readonly clock = new VirtualClock();
  readonly store = new MemoryLeaseStore(this.clock);
  readonly candidates: Candidate[] = [];

  constructor(readonly random: () => number = Math.random) {}

  /** A process that does not run yet. */
  candidate(options: Partial<LeadershipOptions> = {}): Candidate {
    const name = `candidate-${this.candidates.length + 1}`;
    const candidate = new Candidate(name, this, options);
    this.candidates.push(candidate);
    return candidate;
  }

  /** A process that leads. */
  async leader(options: Partial<LeadershipOptions> = {}): Promise<Candidate> {
    const candidate = this.candidate(options);
    candidate.leadership.start();
    await settle();
    return candidate;
  }

  get leaders(): Candidate[] {
    return this.candidates.filter(({ leadership }) => leadership.isLeader);
  }

  /** What the store holds for the group. */
  async holder(): Promise<string | undefined> {
    for await (const { holders } of this.store.list()) return holders[0]?.instance;
    return undefined;
  }
}

/** One process: its engine, its part in the election, and its line to the store, all of which can fail. */
export class Candidate {
  readonly engine: LeaseEngine;
  readonly leadership: Leadership;
  readonly errors: unknown[] = [];
  readonly events: (ElectedEvent | DeposedEvent)[] = [];
  /** The same in short: 'elected', or why it was deposed. */
  readonly story: string[] = [];
  readonly isLeader$: boolean[] = [];
  stuck = 0;
  /** What comes of its requests to the store. */
  line: 'up' | 'down' | 'no-reply' = 'up';
  #isPaused = false;
  #isGone = false;
  readonly #backlog: (() => void)[] = [];

  constructor(
    readonly name: string,
    { clock, store, random }: Constituency,
    options: Partial<LeadershipOptions>,
  ) {
    this.engine = new LeaseEngine({
      store: this.#lineTo(store),
      clock: this.#ownTime(clock),
      namespace: 'test',
      instance: name,
      random,
      ttl: TTL,
      wait: 0,
    });
    this.leadership = new Leadership('group', this.engine, {
      ttl: TTL,
      grace: GRACE,
      campaignWhen: () => true,
      onError: (error) => this.errors.push(error),
      onStuck: () => this.stuck++,
      ...options,
    });
    this.engine.events.all.subscribe((event) => {
      if (event.type !== 'elected' && event.type !== 'deposed') return;
      this.events.push(event);
      this.story.push(event.type === 'elected' ? 'elected' : event.reason);
    });
    this.leadership.isLeader$.subscribe((leads) => this.isLeader$.push(leads));
  }

  /** The process stands still: none of its timers fires and no answer reaches it. Its clock goes on. */
  pause(): void {
    this.#isPaused = true;
  }

  async resume(): Promise<void> {
    this.#isPaused = false;
    for (const run of this.#backlog.splice(0)) {
      run();
      await settle();
    }
  }

  /** The process is gone: nothing of it happens any more. What the store holds of it stays. */
  crash(): void {
    this.#isPaused = true;
    this.#isGone = true;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  async #running(): Promise<void> {
    if (this.#isPaused) await new Promise<void>((resolve) => this.#backlog.push(resolve));
  }

  #ownTime(clock: VirtualClock): Clock {
    return {
      now: () => clock.now(),
      wall: () => clock.wall(),
      setTimer: (run, ms) => {
        // Cleared while it waits in the backlog, it must not fire.
        const timer = { isCleared: false, inner: undefined as unknown };
        const fire = (): void => {
          if (this.#isPaused) this.#backlog.push(fire);
          else if (!timer.isCleared) run();
        };
        timer.inner = clock.setTimer(fire, ms);
        return timer;
      },
      clearTimer: (timer) => {
        if (timer === undefined) return;
        const { inner } = timer as { isCleared: boolean; inner: unknown };
        (timer as { isCleared: boolean }).isCleared = true;
        clock.clearTimer(inner);
      },
    };
  }

  #lineTo(store: MemoryLeaseStore): LeaseStore {
    const ask = async <T>(request: () => Promise<T>): Promise<T> => {
      if (this.#isGone) await new Promise(() => {});
      if (this.line === 'down') throw new Error('The line is down.');
      const answer = await request();
      if (this.line === 'no-reply') await new Promise(() => {});
      await this.#running();
      return answer;
    };
    const tell = async (what: () => void): Promise<void> => {
      await this.#running();
      what();
    };
    return {
      name: store.name,
      limits: store.limits,
      acquire: (claim) => ask(() => store.acquire(claim)),
      renew: (holds) => ask(() => store.renew(holds)),
      release: (hold, how) => ask(() => store.release(hold, how)),
      watch: (key, onFree) => ask(() => store.watch(key, () => void tell(onFree))),
      inspect: (key) => ask(() => store.inspect(key)),
      list: (options) => store.list(options),
      close: () => store.close(),
    };
  }
}

/** Work that ends when it is told to, and says what happened to it. */
export class Task {
  isRunning = false;
  isAborted = false;
  reason: unknown;
  fence: number | undefined;
  readonly outcome: Promise<unknown>;
  #end!: () => void;
  readonly #candidate: Candidate;

  constructor(candidate: Candidate, { stopsOnAbort = false } = {}) {
    this.#candidate = candidate;
    this.outcome = candidate.leadership
      .run(async (lease) => {
        this.isRunning = true;
        this.fence = lease.fence;
        const ended = new Promise<void>((resolve) => (this.#end = resolve));
        lease.signal.addEventListener('abort', () => {
          this.isAborted = true;
          this.reason = lease.signal.reason;
          if (stopsOnAbort) this.#end();
        });
        await ended;
        this.isRunning = false;
        return 'done';
      })
      .catch((error: unknown) => error);
  }

  /** Its process does not stand still. */
  get canHear(): boolean {
    return !this.#candidate.isPaused;
  }

  end(): void {
    this.#end();
  }
}
