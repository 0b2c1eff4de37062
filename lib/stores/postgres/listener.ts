import type { Client } from 'pg';
import { systemClock, type Clock } from '../../lease/clock.js';
import { LISTEN_BEHIND_POOLER, NO_POSTGRES, POSTGRES_SILENT } from '../../lease.messages.js';
import { lockId } from './lock-id.js';
import { OneByOne } from './one-by-one.js';
import { isPooled } from './pooler.js';
import { SILENCE, within } from './postgres-connection.js';
import { CHANNEL } from './statements.js';

/** Nobody has watched for so long: the connection is dropped. */
const IDLE = 60_000;
const RETRY_FIRST = 25;
const RETRY_AT_MOST = 1_000;

interface Watcher {
  /** The number of the lock by which those who release see that somebody watches the key. */
  readonly id: string;
  readonly onFree: () => void;
  /** Where others can see it. */
  seenOn: Client | undefined;
}

/**
 * Hears of releases, for all watchers of this process on one connection: opened by the first, dropped when there has
 * been none for a minute. A connection that breaks is a hint to everybody, and is opened again.
 */
export class Listener {
  readonly #watchers = new Set<Watcher>();
  readonly #turns = new OneByOne();
  #opening: Promise<Client> | undefined;
  /** The one that listens, while it does. */
  #current: Client | undefined;
  #timer: unknown;
  #isClosed = false;
  /** There is a pooler in between: once seen, nobody listens any more. */
  #isPooled = false;

  constructor(
    private readonly connect: () => Client,
    private readonly clock: Clock = systemClock,
  ) {}

  async watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    if (this.#isPooled) throw new Error(LISTEN_BEHIND_POOLER());
    const watcher: Watcher = { id: lockId('watch', key), onFree, seenOn: undefined };
    this.#watchers.add(watcher);
    try {
      await this.#announce(await this.#open(), watcher);
    } catch (error) {
      this.#watchers.delete(watcher);
      throw error;
    }
    return () => this.#stop(watcher);
  }

  open(): void {
    this.#isClosed = false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watchers.clear();
    await this.#hangUp();
  }

  async #hangUp(): Promise<void> {
    this.clock.clearTimer(this.#timer);
    const opening = this.#opening;
    this.#opening = undefined;
    this.#current = undefined;
    await opening?.then((client) => end(client)).catch(() => undefined);
  }

  #open(): Promise<Client> {
    this.clock.clearTimer(this.#timer);
    if (this.#isClosed) return Promise.reject(new Error(NO_POSTGRES()));
    if (this.#opening !== undefined) return this.#opening;
    const opening = this.#listen();
    this.#opening = opening;
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  async #listen(): Promise<Client> {
    const client = this.connect();
    // Both come for one that breaks, in any order, or one of them alone.
    client.on('error', () => this.#lost(client));
    client.on('end', () => this.#lost(client));
    client.on('notification', ({ payload }) => this.#heard(payload));
    try {
      await client.connect();
      // Nothing is heard there, and the locks of those who watch would stay on the server for ever.
      if (await isPooled(client, SILENCE)) throw this.#refusePooler();
      await this.#ask(client, `LISTEN ${CHANNEL}`);
    } catch (error) {
      void end(client);
      throw error;
    }
    // It keeps no process alive (rule 12).
    (client as Client & { unref?: () => void }).unref?.();
    this.#current = client;
    return client;
  }

  /** Told once: who waits polls from now on, and nothing else is wrong. */
  #refusePooler(): Error {
    if (!this.#isPooled) process.emitWarning(LISTEN_BEHIND_POOLER());
    this.#isPooled = true;
    return new Error(LISTEN_BEHIND_POOLER());
  }

  /** Waits for a release of the key that is being committed: who looks after this finds what it left. */
  async #announce(client: Client, watcher: Watcher): Promise<void> {
    if (watcher.seenOn === client) return;
    watcher.seenOn = client;
    await this.#ask(client, 'SELECT pg_advisory_lock_shared($1::bigint)::text', [watcher.id]);
  }

  async #stop(watcher: Watcher): Promise<void> {
    if (!this.#watchers.delete(watcher)) return;
    const client = this.#current;
    if (client === undefined || watcher.seenOn !== client) return;
    if (this.#watchers.size === 0) {
      this.#timer = this.clock.setTimer(() => void this.#hangUp(), IDLE);
    }
    // A lock too many costs others a message in vain; the connection may be gone, and the lock with it.
    await this.#ask(client, 'SELECT pg_advisory_unlock_shared($1::bigint)', [watcher.id]).catch(
      () => {},
    );
  }

  /** One after the other. A connection that does not answer is given up, which shows as its end. */
  async #ask(client: Client, text: string, values: string[] = []): Promise<void> {
    const silent = (): Error => {
      void end(client);
      return new Error(POSTGRES_SILENT(SILENCE));
    };
    await this.#turns.run('', () => within(SILENCE, client.query(text, values), silent));
  }

  #heard(id: string | undefined): void {
    for (const watcher of this.#watchers) if (watcher.id === id) watcher.onFree();
  }

  #lost(client: Client): void {
    if (this.#current !== client) return;
    this.#current = undefined;
    this.#opening = undefined;
    void end(client);
    // Whatever was told meanwhile was told to nobody.
    for (const { onFree } of this.#watchers) onFree();
    if (this.#watchers.size > 0) this.#again(RETRY_FIRST);
  }

  #again(pause: number): void {
    this.clock.clearTimer(this.#timer);
    this.#timer = this.clock.setTimer(() => {
      if (this.#watchers.size === 0 || this.#isClosed || this.#isPooled) return;
      this.#resume().catch(() => this.#again(Math.min(2 * pause, RETRY_AT_MOST)));
    }, pause);
  }

  async #resume(): Promise<void> {
    const client = await this.#open();
    for (const watcher of this.#watchers) {
      await this.#announce(client, watcher);
      watcher.onFree();
    }
  }
}

/** Resolves when the connection is gone, whatever state it was in. */
async function end(client: Client): Promise<void> {
  client.removeAllListeners('notification');
  const { connection } = client as Client & { connection?: { stream?: { destroy(): void } } };
  const gone = client.end().catch(() => undefined);
  await within(100, gone, () => new Error(NO_POSTGRES())).catch(() =>
    connection?.stream?.destroy(),
  );
}
