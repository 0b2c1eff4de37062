import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Hold, OnTurn } from '../lease-store.js';
import { hangUp } from './redis-connection.js';
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
 * Those of this process who wait in line in Redis, and the one subscription by which all of them are told. Opened by
 * the first to wait, dropped when nobody has for a while.
 */
export class RedisLine {
  /** Where this process listens. */
  readonly channel = `nestjs-lease:${randomUUID()}`;

  /**
   * By token: who waits, and who was granted the key and has not given it back. The call may come after the answer to a
   * claim that said so, by the other connection: it is of a turn that was taken.
   */
  readonly #places = new Map<string, Place>();
  #waiting = 0;
  /** Somebody has waited since the last look. */
  #isUsed = false;
  #client: Redis | undefined;
  #isOpen = false;
  #idle: NodeJS.Timeout | undefined;

  /**
   * @param connect - a connection of its own: a subscriber can do nothing else
   * @param onStray - a key was granted to a token that neither waits here any more nor has it
   * @param isFinal - whether who is told of a grant has it; else it is to ask for it
   */
  constructor(
    private readonly connect: () => Redis,
    private readonly onStray: (lease: string, token: string) => void,
    private readonly idle = IDLE,
    private readonly isFinal = true,
  ) {}

  /** Whether this process is told. If not it must not stand in line: it would be passed over. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The place of one who waits. */
  get(token: string): Place | undefined {
    const place = this.#places.get(token);
    return place?.isTaken ? undefined : place;
  }

  /** From now on its turn is told to it. */
  enter(hold: Hold, onTurn: OnTurn): Place {
    this.#isUsed = true;
    if (this.#client === undefined) this.#open();
    const before = this.get(hold.token);
    if (before === undefined) this.#waiting++;
    const place: Place = { hold, onTurn, inLine: before?.inLine, isTaken: false };
    this.#places.set(hold.token, place);
    return place;
  }

  /** It has the key: what it is told from now on is old. */
  take(token: string): void {
    const place = this.get(token);
    if (place === undefined) return;
    place.isTaken = true;
    this.#left();
  }

  /**
   * It waits no more, or has given the key back: what it is granted from now on is nobody's. Returns the place that
   * it had.
   */
  leave(token: string): Place | undefined {
    if (this.#places.size === 0) return undefined;
    const place = this.get(token);
    this.#places.delete(token);
    if (place !== undefined) this.#left();
    return place;
  }

  /** Resolves when the socket is gone. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    this.#idle = undefined;
    const client = this.#client;
    this.#client = undefined;
    this.#isOpen = false;
    if (client !== undefined) await hangUp(client);
  }

  /** The server is not the one to listen at any more. */
  reconnect(): void {
    this.#client?.disconnect(true);
  }

  #left(): void {
    if (--this.#waiting > 0 || this.#idle !== undefined) return;
    this.#isUsed = false;
    this.#idle = setTimeout(() => this.#look(), this.idle).unref();
  }

  /** One timer for as long as it is in use: to set it anew for every turn would cost more than the turn does. */
  #look(): void {
    this.#idle = undefined;
    if (this.#waiting > 0) return;
    if (!this.#isUsed) return void this.close();
    this.#isUsed = false;
    this.#idle = setTimeout(() => this.#look(), this.idle).unref();
  }

  #open(): void {
    const client = this.connect();
    this.#client = client;
    client.on('message', (_channel, news) => this.#hear(news));
    client.on('ready', () => {
      client.subscribe(this.channel).then(
        () => this.#listens(client),
        (error: unknown) => {
          // Not allowed to: then nobody here stands in line, and all of them poll. A connection that broke is
          // replaced by itself.
          if (error instanceof Error && error.name === 'ReplyError') client.disconnect();
        },
      );
    });
    client.on('close', () => {
      if (this.#client !== client || !this.#isOpen) return;
      this.#isOpen = false;
      this.#callAll();
    });
    // Its failures come as events too, and it goes on trying.
    client.connect().catch(() => {});
  }

  #listens(client: Redis): void {
    if (this.#client !== client) return;
    this.#isOpen = true;
    // What was released before told nobody: look again, and stand in line this time.
    this.#callAll();
  }

  #callAll(): void {
    // Who is called may ask at once, and so take its place anew.
    const called = [...this.#places.values()].filter(({ isTaken }) => !isTaken);
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
