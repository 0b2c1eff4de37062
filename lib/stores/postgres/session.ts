import type { Client } from 'pg';
import { NO_POSTGRES, POOLER_IN_BETWEEN, POSTGRES_SILENT } from '../../lease.messages.js';
import { OneByOne } from './one-by-one.js';
import { isPooled } from './pooler.js';
import { within, type Row } from './postgres-connection.js';
import { leavesUsable } from './postgres-errors.js';

/** An answer that is owed for longer ends the session, and every lock with it: as long as anybody waits for one. */
const SILENCE = 5_000;

/** The server lets go of a client whose machine is gone after some ten seconds, and not after two hours. */
const KEEPALIVES = `
SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 10000`;

/**
 * One session of PostgreSQL: what it locks is locked until it says otherwise or ends. A new one is begun when it is
 * asked for and there is none; that it is not the old one is told by `onLost`, before anything is asked of the new one.
 */
export class Session {
  readonly #turns = new OneByOne();
  #opening: Promise<Client> | undefined;
  #client: Client | undefined;
  #isClosed = false;

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

  /** One statement, one after the other; `until` bounds how long it may wait for its turn (rule 2). */
  ask(text: string, values: readonly unknown[] | undefined, until: number): Promise<Row[]> {
    return this.#turns.run('', () => this.#ask(text, values, until));
  }

  async #ask(text: string, values: readonly unknown[] | undefined, until: number): Promise<Row[]> {
    const left = until - performance.now();
    if (this.#isClosed || left <= 0) throw new Error(NO_POSTGRES());
    const client = await within(left, this.#begin(), () => new Error(NO_POSTGRES()));
    const asked = values === undefined ? client.query(text) : client.query(text, [...values]);
    try {
      const { rows } = await within(SILENCE, asked, () => new Error(POSTGRES_SILENT(SILENCE)));
      return rows as Row[];
    } catch (error) {
      if (!leavesUsable(error)) this.end(client);
      throw error;
    }
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
      const silent = (): Error => new Error(POSTGRES_SILENT(SILENCE));
      await within(SILENCE, client.query(KEEPALIVES), silent);
    } catch (error) {
      destroy(client);
      throw error;
    }
    this.#client = client;
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
