import type { Clock } from '../../../lib/lease/clock.js';
import type { LeaseEvent } from '../../../lib/lease/events.js';
import { LeaseEngine, type LeaseEngineOptions } from '../../../lib/lease/lease-engine.js';
import { Heartbeat } from '../../../lib/lease/thread/heartbeat.js';
import type { ThreadKind, ThreadListeners } from '../../../lib/lease/thread/renewal-thread.js';
import type { FromThread } from '../../../lib/lease/thread/thread-messages.js';
import { Wards } from '../../../lib/lease/thread/wards.js';
import type { StoreInThread } from '../../../lib/stores/lease-store.js';
import { MemoryLeaseStore } from '../../../lib/stores/memory/memory-lease-store.js';
import { ScriptedStore } from '../../support/scripted-store.js';
import { settle, VirtualClock } from '../../support/virtual-clock.js';
import { TTL, type EventOf } from './world.js';

export const HUNG_AFTER = 10 * TTL;

class StoreForThreads extends ScriptedStore {
  thread(): StoreInThread {
    return { module: 'a-store', export: 'Store', args: [] };
  }
}

/** The time of a thread whose event loop can be blocked: time passes, its timers do not have their turn. */
class BlockableClock implements Clock {
  isBlocked = false;
  readonly #held = new Set<() => void>();

  constructor(private readonly time: VirtualClock) {}

  now = (): number => this.time.now();
  wall = (): number => this.time.wall();

  setTimer(run: () => void, ms: number): unknown {
    const turn = (): void => void (this.isBlocked ? this.#held.add(run) : run());
    return { run, timer: this.time.setTimer(turn, ms) };
  }

  clearTimer(handle: unknown): void {
    const { run, timer } = (handle ?? {}) as { run?: () => void; timer?: unknown };
    this.time.clearTimer(timer);
    if (run) this.#held.delete(run);
  }

  /** What comes from outside while it is blocked waits too. */
  deliver(run: () => void): void {
    if (this.isBlocked) this.#held.add(run);
    else run();
  }

  wake(): void {
    this.isBlocked = false;
    for (const run of this.#held) {
      this.#held.delete(run);
      run();
    }
  }
}

/** An engine whose leases are renewed by another thread, both on one time and one store, each by a way of its own. */
export class ThreadWorld {
  readonly clock = new VirtualClock();
  readonly loop = new BlockableClock(this.clock);
  readonly memory = new MemoryLeaseStore(this.clock);
  /** As the event loop reaches it, and as the thread does. */
  readonly store = new StoreForThreads(this.memory);
  readonly threadStore = new ScriptedStore(this.memory);
  readonly engine: LeaseEngine;
  readonly events: LeaseEvent[] = [];
  readonly warnings: string[] = [];
  /** What was told to whom, in the order of time. */
  isTerminated = false;
  isStarted = false;
  places = new Set<number>();
  #listeners: ThreadListeners | undefined;

  constructor(options: Partial<LeaseEngineOptions> & { cannotStart?: Error } = {}) {
    const { cannotStart, ...others } = options;
    const kind: ThreadKind = {
      now: this.clock.now.bind(this.clock),
      start: ({ heartbeat, hungAfter }, listeners) => {
        if (cannotStart) throw cannotStart;
        this.#listeners = listeners;
        const wards = new Wards({
          store: this.threadStore,
          clock: this.clock,
          random: () => 1,
          heartbeat: new Heartbeat(() => this.clock.now(), heartbeat),
          hungAfter,
          post: (message) => this.#toLoop(structuredClone(message)),
        });
        this.isStarted = true;
        return {
          post: (message) => {
            for (const { place } of message.charges) this.places.add(place);
            wards.hear(structuredClone(message));
          },
          terminate: async () => {
            this.isTerminated = true;
          },
        };
      },
    };
    this.engine = new LeaseEngine({
      namespace: 'test',
      instance: 'me',
      ttl: TTL,
      wait: 0,
      store: this.store,
      clock: this.loop,
      random: () => 1,
      renewInThread: { hungAfter: HUNG_AFTER, kind },
      ...others,
    });
    this.engine.events.all.subscribe((event) => this.events.push(event));
    this.engine.events.warnings.subscribe((message) => this.warnings.push(message));
  }

  static async started(options: Partial<LeaseEngineOptions> = {}): Promise<ThreadWorld> {
    const world = new ThreadWorld(options);
    while (!world.isStarted) await settle();
    await settle();
    return world;
  }

  of<Type extends LeaseEvent['type']>(type: Type): EventOf<Type>[] {
    return this.events.filter((event): event is EventOf<Type> => event.type === type);
  }

  async isTaken(key: string): Promise<boolean> {
    return (await this.memory.inspect(`test/${key}`)) !== null;
  }

  /** Somebody deletes the key behind everybody's back. */
  async steal(key: string): Promise<void> {
    const { token } = this.store.claims.findLast((claim) => claim.key === `test/${key}`)!;
    await this.memory.release({ key: `test/${key}`, token, ttl: TTL, permits: 1 }, {});
  }

  /** The event loop stands still; the thread does not. */
  async block(ms: number): Promise<void> {
    this.loop.isBlocked = true;
    await this.clock.advance(ms);
  }

  async wake(): Promise<void> {
    this.loop.wake();
    await settle();
  }

  /** The thread dies. */
  die(cause: unknown): void {
    this.#listeners!.onEnd(cause);
  }

  #toLoop(message: FromThread): void {
    this.loop.deliver(() => this.#listeners!.onMessage(message));
  }
}
