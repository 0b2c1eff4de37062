import { randomUUID } from 'node:crypto';
import { Command, type Redis } from 'ioredis';
import { hangUp } from './redis-connection.js';

/** What the names of all channels begin with: see the user in docs/redis.md. */
const CHANNEL = 'nestjs-lease:';
/** A server before Redis 7, or a user that may not. */
const CANNOT = /^NOPERM |unknown command/i;
/** ioredis before 5.3 takes what is told on such a channel for the answer to a command. */
const KNOWS_SHARDS = Command.checkFlag('ENTER_SUBSCRIBER_MODE', 'ssubscribe');

export interface ListenerOptions {
  /** A connection of its own: a subscriber can do nothing else. */
  readonly subscribe: () => Redis;
  /** Of a node of a cluster: a hash tag of the slot that a key has. */
  readonly tagOf?: (key: string) => string;
}

/** Who wants to hear. */
export interface Audience {
  /** The keys that are waited for. */
  awaited(): Iterable<string>;
  hear(news: string): void;
  /** They are heard from now on, or not any more. */
  onChange(channels: ReadonlySet<string>): void;
}

/**
 * The connection by which this process is told of turns by a server, and where on it. By one server alone, or behind
 * Sentinel, on one channel of our own for all keys. By a node of a cluster on one for each slot that has keys which are
 * waited for: what is published there stays with the nodes that have the slot. Where that cannot be, as by one server.
 */
export class Listener {
  readonly #id = randomUUID();
  readonly #forAll = CHANNEL + this.#id;
  /** Of the connection as it is: those that were asked for, and whether they are heard. */
  readonly #channels = new Map<string, boolean>();
  #isSharded = false;
  #client: Redis | undefined;

  constructor(
    private readonly options: ListenerOptions,
    private readonly audience: Audience,
  ) {}

  /** Of a key: where its turns are told to us, if we hear there. */
  heardFor(key: string): string | undefined {
    const channel = this.channelOf(key);
    return this.#channels.get(channel) === true ? channel : undefined;
  }

  /** The same, if we heard. A name with a hash tag is that of a channel of a slot: see lua/parts/told.lua. */
  channelOf(key: string): string {
    if (!this.#isSharded) return this.#forAll;
    return `${CHANNEL}{${this.options.tagOf!(key)}}:${this.#id}`;
  }

  listenFor(key: string): void {
    if (this.#client === undefined) return this.#open();
    if (this.#isSharded && this.#client.status === 'ready') this.#subscribe(this.channelOf(key));
  }

  /** Leaves the channels on which nothing is waited for. */
  leaveOthers(): void {
    if (!this.#isSharded) return;
    const wanted = new Set([...this.audience.awaited()].map((key) => this.channelOf(key)));
    for (const [channel, isHeard] of this.#channels) {
      if (!isHeard || wanted.has(channel)) continue;
      this.#channels.delete(channel);
      // What is heard on it all the same is given back.
      this.#client?.sunsubscribe(channel).catch(() => {});
    }
  }

  /** Resolves when the socket is gone. */
  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#channels.clear();
    if (client !== undefined) await hangUp(client);
  }

  /** The server is not the one to listen to any more. */
  reconnect(): void {
    this.#client?.disconnect(true);
  }

  #open(): void {
    const client = this.options.subscribe();
    this.#client = client;
    this.#isSharded = this.options.tagOf !== undefined && KNOWS_SHARDS;
    const hear = (_channel: string, news: string): void => this.audience.hear(news);
    // What a slot takes with it is told by the one event, by ioredis 5 as an answer that it did not expect.
    const look = (): void => this.#lookForLost(client);
    client.on('message', hear).on('smessage', hear).on('moved', look).on('error', look);
    client.on('ready', () => {
      if (!this.#isSharded) return this.#subscribe(this.#forAll);
      for (const key of this.audience.awaited()) this.#subscribe(this.channelOf(key));
    });
    client.on('close', () => {
      if (this.#client === client) this.#lost([...this.#channels.keys()]);
    });
    // Its failures come as events too, and it goes on trying.
    client.connect().catch(() => {});
  }

  #subscribe(channel: string): void {
    const client = this.#client;
    if (client === undefined || this.#channels.has(channel)) return;
    this.#channels.set(channel, false);
    const asked = channel === this.#forAll ? client.subscribe(channel) : client.ssubscribe(channel);
    asked.then(
      () => this.#listens(client, channel),
      (error: unknown) => {
        // A connection that broke is replaced by itself.
        if (this.#client !== client || !(error instanceof Error && error.name === 'ReplyError'))
          return;
        this.#refused(client, channel, error);
      },
    );
  }

  #listens(client: Redis, channel: string): void {
    if (this.#client !== client || !this.#channels.has(channel)) return;
    this.#channels.set(channel, true);
    // What was released before told nobody: look again, and stand in line this time.
    this.audience.onChange(new Set([channel]));
  }

  #refused(client: Redis, channel: string, { message }: Error): void {
    // Not allowed to: then nobody here stands in line, and all of them poll.
    if (channel === this.#forAll) return client.disconnect();
    this.#channels.delete(channel);
    // Or it is the slot that is elsewhere: who asks for the key is told so, too.
    if (!CANNOT.test(message)) return;
    this.#isSharded = false;
    // Both kinds on one connection are more than ioredis can tell apart.
    if ([...this.#channels.values()].includes(true)) client.disconnect(true);
    else this.#subscribe(this.#forAll);
  }

  /** Of the channels of slots: those that the server has taken from us. */
  #lookForLost(client: Redis): void {
    if (this.#client !== client || !this.#isSharded) return;
    const { condition } = client as Redis & { condition?: SubscriberCondition };
    const left = new Set((condition?.subscriber || undefined)?.channels('ssubscribe'));
    this.#lost([...this.#channels].flatMap(([name, is]) => (is && !left.has(name) ? name : [])));
  }

  #lost(channels: readonly string[]): void {
    const heard = channels.filter((channel) => this.#channels.get(channel) === true);
    for (const channel of channels) this.#channels.delete(channel);
    if (heard.length > 0) this.audience.onChange(new Set(heard));
  }
}

/** What ioredis knows of the subscriptions of a connection. */
interface SubscriberCondition {
  readonly subscriber: false | { channels(kind: 'ssubscribe'): string[] };
}
