import { createAlone } from './migration.js';
import type { Connections, Row } from './postgres-connection.js';
import { forPeople, isCreatedMeanwhile, isMissingTable } from './postgres-errors.js';

/** Sends statements to tables that may have to be created first: when one is missing, and not before. */
export class Tables {
  #creating: Promise<void> | undefined;

  /** @param create - the SQL that creates them; nothing when that is somebody else's task */
  constructor(
    private readonly connections: Connections,
    private readonly name: string,
    private readonly create: string | undefined,
  ) {}

  /** One statement. An error of it is for people, and holds none of `secrets` (rule 15). */
  async ask(
    text: string,
    values: readonly unknown[],
    until: number,
    secrets: readonly string[] = [],
  ): Promise<Row[]> {
    try {
      try {
        return await this.connections.ask(text, values, until);
      } catch (error) {
        if (this.create === undefined || !isMissingTable(error)) throw error;
        await this.#createOnce(until);
        return await this.connections.ask(text, values, until);
      }
    } catch (error) {
      throw forPeople(error, this.name, secrets);
    }
  }

  /** All who find it missing wait for the same try. */
  #createOnce(until: number): Promise<void> {
    this.#creating ??= this.#createAll(until).finally(() => {
      this.#creating = undefined;
    });
    return this.#creating;
  }

  async #createAll(until: number): Promise<void> {
    const sql = createAlone(this.create!);
    try {
      await this.connections.ask(sql, undefined, until);
    } catch (error) {
      if (!isCreatedMeanwhile(error)) throw error;
    }
  }
}
