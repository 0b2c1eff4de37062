import type { Hold, OnTurn } from '../lease-store.js';
import { Listener, type ListenerOptions } from './listener.js';
import { readToken } from './wire-token.js';

/** Nobody waits any more: the connection is kept so long, and at most twice as long, for the next who does. */
const IDLE = 60_000;

export interface Place {
  readonly hold: Hold;
  readonly onTurn: OnTurn;
  /** As it stands in the line, in Redis; unknown while no claim of it was sent to stand there. */
  inLine: string | undefined;
  /** It has the key: what it is told from now on is old. */
  isTaken: boolean;
}

/**
 * Those of this process who wait in line in Redis, and what they are told. The first to wait begins to listen; it is
 * ended when nobody has waited for a while.
 */
export class RedisLine {
  /**
   * By token: who waits, and who was granted the key and has not given it back. The call may come after the answer to a
   * claim that said so, by the other connection: it is of a turn that was taken.
   */
  readonly #places = new Map<string, Place>();
  readonly #listener: Listener;
  #waiting = 0;
  /** Somebody has waited since the last look. */
  #isUsed = false;
  #looks: NodeJS.Timeout | undefined;

  /**
   * @param onStray - a key was granted to a token that neither waits here any more nor has it
   * @param isFinal - whether who is told of a grant has it; else it is to ask for it
   */
  constructor(
    options: ListenerOptions,
    private readonly onStray: (lease: string, token: string) => void,
    private readonly idle = IDLE,
    private readonly isFinal = true,
  ) {
    this.#listener = new Listener(options, {
      awaited: () => this.#awaiting().map(({ hold }) => hold.key),
      hear: (news) => this.#hear(news),
      onChange: (channels) => this.#call(channels),
    });
  }

  /** Where this process is told of turns with a key. If nowhere it must not stand in line: it would be passed over. */
  channelFor(key: string): string | undefined {
    return this.#listener.heardFor(key);
  }

  /** The place of one who waits. */
  get(token: string): Place | undefined {
    const place = this.#places.get(token);
    return place?.isTaken ? undefined : place;
  }

  /** From now on its turn is told to it. */
  enter(hold: Hold, onTurn: OnTurn): Place {
    this.#isUsed = true;
    // One timer for as long as it is in use: to set it anew for every turn would cost more than the turn does.
    this.#looks ??= setInterval(() => this.#look(), this.idle).unref();
    const before = this.get(hold.token);
    if (before === undefined) this.#waiting++;
    const place: Place = { hold, onTurn, inLine: before?.inLine, isTaken: false };
    this.#places.set(hold.token, place);
    this.#listener.listenFor(hold.key);
    return place;
  }

  /** It has the key: what it is told from now on is old. */
  take(token: string): void {
    const place = this.get(token);
    if (place === undefined) return;
    place.isTaken = true;
    this.#waiting--;
  }

  /**
   * It waits no more, or has given the key back: what it is granted from now on is nobody's. Returns the place that
   * it had.
   */
  leave(token: string): Place | undefined {
    if (this.#places.size === 0) return undefined;
    const place = this.get(token);
    this.#places.delete(token);
    if (place !== undefined) this.#waiting--;
    return place;
  }

  /** Resolves when the socket is gone. */
  close(): Promise<void> {
    clearInterval(this.#looks);
    this.#looks = undefined;
    return this.#listener.close();
  }

  /** The server is not the one to listen to any more. */
  reconnect(): void {
    this.#listener.reconnect();
  }

  #look(): void {
    if (this.#waiting === 0 && !this.#isUsed) return void this.close();
    this.#isUsed = this.#waiting > 0;
    this.#listener.leaveOthers();
  }

  #awaiting(): Place[] {
    return [...this.#places.values()].filter(({ isTaken }) => !isTaken);
  }

  #call(channels: ReadonlySet<string>): void {
    // Who is called may ask at once, and so take its place anew.
    const called = this.#awaiting().filter(({ hold }) =>
      channels.has(this.#listener.channelOf(hold.key)),
    );
    for (const { onTurn } of called) onTurn();
  }

  #hear(news: string): void {
    const [what, ...rest] = news.split(' ');
    if (what === 'free') return this.get(readToken(rest[0] ?? ''))?.onTurn();
    const [figure, wire, ...name] = rest;
    const fence = Number(figure);
    if (what !== 'granted' || wire === undefined || !(Number.isSafeInteger(fence) && fence > 0)) {
      return;
    }
    const token = readToken(wire);
    const place = this.#places.get(token);
    if (place === undefined) return this.onStray(name.join(' '), token);
    if (place.isTaken) return;
    if (!this.isFinal) return place.onTurn();
    this.take(token);
    place.onTurn({ granted: true, fence });
  }
}
