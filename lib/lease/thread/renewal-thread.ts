import { Worker } from 'node:worker_threads';
import type { StoreInThread } from '../../stores/lease-store.js';
import type { Agenda, Appointment } from '../agenda.js';
import type { Holding } from '../holding.js';
import type { Deputy } from '../renewer.js';
import type { Trust, TrustNews } from '../trust.js';
import { Heartbeat } from './heartbeat.js';
import { sharedClock, SharedTime } from './shared-time.js';
import type { Charge, FromThread, ThreadStart, ToThread } from './thread-messages.js';
import { TrustBoard } from './trust-board.js';

const BEAT_AT_MOST = 1_000;

/** The thread, as this side sees it. */
export interface ThreadPort {
  post(message: ToThread): void;
  terminate(): Promise<unknown>;
}

export interface RenewalThreadParts {
  readonly agenda: Agenda;
  readonly hungAfter: number;
  readonly store: StoreInThread;
  readonly kind: ThreadKind;
  readonly onRenewed: (holding: Holding) => void;
  readonly onFailed: (holding: Holding, error: Error) => void;
  /** It is no more; these were its leases. */
  readonly onDeath: (holdings: readonly Holding[], cause: unknown) => void;
}

export interface ThreadListeners {
  onMessage(message: FromThread): void;
  /** May be called more than once. */
  onEnd(cause: unknown): void;
}

export interface ThreadKind {
  /** The time that both threads read. */
  readonly now: () => number;
  start(start: ThreadStart, listeners: ThreadListeners): ThreadPort;
}

/** A worker that keeps no process alive (rule 12) and says nothing by itself. */
export const worker: ThreadKind = {
  now: sharedClock.now,
  start(workerData, { onMessage, onEnd }) {
    const file = new URL('./renewal-worker.js', import.meta.url);
    const thread = new Worker(file, {
      name: 'nestjs-lease',
      workerData,
      stdout: true,
      stderr: true,
    });
    thread.on('message', onMessage);
    thread.on('error', onEnd);
    thread.on('exit', (code) => onEnd(new Error(`It ended with code ${code}.`)));
    // After the listeners: to listen is to hold on to it.
    thread.unref();
    return {
      post: (message) => thread.postMessage(message, []),
      terminate: () => thread.terminate(),
    };
  },
};

/** The leases of this process, in the hands of a thread whose event loop nothing of the application blocks. */
export class RenewalThread implements Deputy<Holding> {
  readonly #parts: RenewalThreadParts;
  readonly #port: ThreadPort;
  readonly #time: SharedTime;
  readonly #heartbeat: Heartbeat;
  readonly #board = new TrustBoard();
  readonly #holdings = new Map<number, Holding>();
  readonly #links: Links;
  readonly #free: number[] = [];
  #places = 0;
  #lastId = 0;
  #sheets: SharedArrayBuffer[] = [];
  #charges: Charge[] = [];
  #left: number[] = [];
  #beat: Appointment | undefined;
  #isOver = false;

  constructor(parts: RenewalThreadParts) {
    this.#parts = parts;
    const { agenda, hungAfter, store, kind } = parts;
    this.#time = new SharedTime(agenda.clock, kind.now);
    const leave = (id: number): void => this.#leave(id);
    this.#links = { board: this.#board, time: this.#time, leave };
    this.#heartbeat = new Heartbeat(this.#time.now);
    this.#heartbeat.beat();
    this.#port = kind.start(
      { store, heartbeat: this.#heartbeat.memory, hungAfter },
      { onMessage: (message) => this.#hear(message), onEnd: (cause) => this.#die(cause) },
    );
  }

  get hungAfter(): number {
    return this.#parts.hungAfter;
  }

  tend(holding: Holding): void {
    if (this.#isOver) return;
    let followed = holding.trust.news as Followed | undefined;
    if (followed === undefined) {
      followed = new Followed(this.#place(), ++this.#lastId, this.#links);
      holding.trust.news = followed;
      this.#holdings.set(followed.id, holding);
      if (this.#beat === undefined) this.#beatOn();
    }
    const { id, place } = followed;
    const { sentAt, sentAtWall } = holding.trust;
    if (this.#charges.length === 0) queueMicrotask(() => this.#post());
    this.#charges.push({
      id,
      place,
      hold: holding.hold,
      mono: this.#time.toShared(sentAt),
      wall: sentAtWall,
      maxHoldAt: this.#time.toShared(holding.maxHoldAt),
    });
  }

  has({ trust }: Holding): boolean {
    return trust.news !== undefined;
  }

  leave({ trust }: Holding): void {
    trust.leave();
  }

  /** What is still held is left to its ttl. */
  leaveAll(): void {
    for (const holding of this.#holdings.values()) this.leave(holding);
    this.#post();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    if (this.#beat !== undefined) this.#parts.agenda.cancel(this.#beat);
    await this.#port.terminate();
  }

  #place(): number {
    const free = this.#free.pop();
    if (free !== undefined) {
      this.#board.clear(free);
      return free;
    }
    if (this.#places === this.#board.places) this.#sheets.push(this.#board.addSheet());
    return this.#places++;
  }

  /** Told with the next message, or the next beat: a renewal too many is answered with "gone", and nobody listens. */
  #leave(id: number): void {
    this.#holdings.delete(id);
    this.#left.push(id);
  }

  #post(): void {
    if (this.#isOver) return;
    const message = { sheets: this.#sheets, charges: this.#charges, left: this.#left };
    if (message.charges.length + message.left.length === 0) return;
    this.#sheets = [];
    this.#charges = [];
    this.#left = [];
    // A lease that is taken after a time without any finds the heart beating.
    this.#heartbeat.beat();
    this.#port.post(message);
  }

  #beatOn(): void {
    this.#heartbeat.beat();
    const { agenda, hungAfter } = this.#parts;
    const isNeeded = this.#holdings.size + this.#left.length > 0;
    this.#post();
    this.#beat = isNeeded
      ? agenda.after(Math.min(hungAfter / 4, BEAT_AT_MOST), () => this.#beatOn())
      : undefined;
  }

  #hear({ renewed, gone, failed, freed }: FromThread): void {
    this.#free.push(...freed);
    for (const id of renewed) this.#of(id, this.#parts.onRenewed);
    // To look is to find it: the board says so too.
    for (const id of gone) this.#of(id, () => {});
    for (const { id, error } of failed) {
      this.#of(id, (holding) => this.#parts.onFailed(holding, error));
    }
  }

  #of(id: number, tell: (holding: Holding) => void): void {
    const holding = this.#holdings.get(id);
    if (holding?.isHeld) tell(holding);
  }

  #die(cause: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#beat !== undefined) this.#parts.agenda.cancel(this.#beat);
    const holdings = [...this.#holdings.values()].filter((holding) => holding.isHeld);
    // What it published last still counts, and was heard by that look.
    for (const { trust } of holdings) trust.news = undefined;
    this.#parts.onDeath(holdings, cause);
  }
}

interface Links {
  readonly board: TrustBoard;
  readonly time: SharedTime;
  leave(id: number): void;
}

/** What the thread has published of one lease, for whoever looks at the clock. */
class Followed implements TrustNews {
  #seen = 0;

  constructor(
    readonly place: number,
    readonly id: number,
    private readonly links: Links,
  ) {}

  get isGone(): boolean {
    return this.links.board.isGone(this.place);
  }

  hear(trust: Trust): void {
    const { board, time } = this.links;
    const version = board.version(this.place);
    if (version === this.#seen) return;
    this.#seen = version;
    const { mono, wall, ttl } = board.read(this.place);
    trust.extend(time.toOwn(mono), wall, ttl);
  }

  leave(): void {
    this.links.leave(this.id);
  }
}
