import type { Client } from 'pg';
import { NO_POSTGRES, POOLER_IN_BETWEEN, POSTGRES_SILENT } from '../../lease.messages.js';
import { OneByOne } from './one-by-one.js';
import { isPooled } from './pooler.js';
import { within, type Row } from './postgres-connection.js';
import { leavesUsable } from './postgres-errors.js';

/** An answer that is owed for longer ends the session, and every lock with it: as long as anybody waits for one. */
const SILENCE = 5_000;

/** Seconds of silence after which the server lets go of a client, at least: whole ones are what it counts in. */
const OUTLAST_AT_LEAST = 2;
/** What Linux takes for the time between two keepalives. */
const KEEPALIVE_AT_MOST = 32_767;

/** Those of them that this server has; a server before 14 ends no idle session, one before 12 has no user timeout. */
const SETTINGS = `
SELECT count(set_config(wanted.name, wanted.value, false))
FROM jsonb_each_text(($1::text)::jsonb) AS wanted (name, value)
WHERE wanted.name IN (SELECT name FROM pg_settings)`;

/** No sooner than after so many seconds without a word does the server end the session by itself. */
function settingsFor(seconds: number): string {
  const idle = Math.min(Math.ceil(seconds / 2), KEEPALIVE_AT_MOST);
  const count = 3;
  return JSON.stringify({
    tcp_keepalives_idle: idle,
    tcp_keepalives_interval: Math.max(1, Math.ceil((seconds - idle) / count)),
    tcp_keepalives_count: count,
    tcp_user_timeout: seconds * 1_000,
    idle_session_timeout: 0,
  });
}

/**
 * One session of PostgreSQL: what it locks is locked until it says otherwise or ends. A new one is begun when it is
 * asked for and there is none; that it is not the old one is told by `onLost`, before anything is asked of the new one.
 */
export class Session {
  readonly #turns = new OneByOne();
  #opening: Promise<Client> | undefined;
  #client: Client | undefined;
  #isClosed = false;
  #outlasts = OUTLAST_AT_LEAST;
  /** Of the client: for how long the server was told to wait. */
  #told = 0;

  constructor(
    private readonly connect: () => Client,
    private readonly onLost: () => void,
  ) {}

  /** The number of the server's process, while there is one: a lock is held as long as it is the same. */
  get pid(): string | undefined {
    const client = this.#client as (Client & { processID?: number }) | undefined;
    return client && String(client.processID);
  }

  open(): void {
    this.#isClosed = false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const opening = this.#opening;
    const client = await opening?.catch(() => undefined);
    if (client === undefined) return;
    const gone = client.end().catch(() => undefined);
    this.#lost(client);
    await within(500, gone, () => new Error(NO_POSTGRES())).catch(() => destroy(client));
  }

  /**
   * From the next statement on the server does not give up a client that it hears nothing of for so many milliseconds.
   * Who holds a lease trusts it for less than its ttl after the server last heard of it (rule 3): a holder that is
   * cut off without a word has lost it by itself before the server frees it.
   */
  outlast(ttl: number): void {
    this.#outlasts = Math.max(this.#outlasts, Math.ceil(ttl / 1_000));
  }

  /** One statement, one after the other; `until` bounds how long it may wait for its turn (rule 2). */
  ask(text: string, values: readonly unknown[] | undefined, until: number): Promise<Row[]> {
    return this.#turns.run('', () => this.#ask(text, values, until));
  }

  async #ask(text: string, values: readonly unknown[] | undefined, until: number): Promise<Row[]> {
    const left = until - performance.now();
    if (this.#isClosed || left <= 0) throw new Error(NO_POSTGRES());
    const client = await within(left, this.#begin(), () => new Error(NO_POSTGRES()));
    try {
      const seconds = this.#outlasts;
      if (this.#told < seconds) {
        await this.#send(client, SETTINGS, [settingsFor(seconds)]);
        this.#told = seconds;
      }
      return await this.#send(client, text, values);
    } catch (error) {
      if (!leavesUsable(error)) this.end(client);
      throw error;
    }
  }

  async #send(client: Client, text: string, values: readonly unknown[] = []): Promise<Row[]> {
    // Several statements in one text may have no values.
    const asked = values.length === 0 ? client.query(text) : client.query(text, [...values]);
    const { rows } = await within(SILENCE, asked, () => new Error(POSTGRES_SILENT(SILENCE)));
    return rows as Row[];
  }

  /** Ends it at once. The server frees what it held when it hears of that. */
  end(client = this.#client): void {
    if (client === undefined) return;
    this.#lost(client);
    destroy(client);
  }

  #begin(): Promise<Client> {
    if (this.#opening !== undefined) return this.#opening;
    const opening = this.#connect();
    this.#opening = opening;
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  async #connect(): Promise<Client> {
    const client = this.connect();
    client.on('error', () => this.end(client));
    client.on('end', () => this.#lost(client));
    try {
      await client.connect();
      // First of all: a setting would stay behind on a session that others use after us.
      if (await isPooled(client, SILENCE)) throw new Error(POOLER_IN_BETWEEN());
    } catch (error) {
      destroy(client);
      throw error;
    }
    this.#client = client;
    this.#told = 0;
    return client;
  }

  #lost(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#opening = undefined;
    this.onLost();
  }
}

function destroy(client: Client): void {
  const { connection } = client as Client & { connection?: { stream?: { destroy(): void } } };
  connection?.stream?.destroy();
}
