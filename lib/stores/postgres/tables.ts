import { createAlone } from './migration.js';
import type { Row } from './postgres-connection.js';
import { forPeople, isCollision, isCreatedMeanwhile, isMissingTable } from './postgres-errors.js';

/** What sends a statement: any connection of a pool, or one session. */
export interface Sender {
  ask(text: string, values: readonly unknown[] | undefined, until: number): Promise<Row[]>;
}

/** Sends statements to tables that may have to be created first: when one is missing, and not before. */
export class Tables {
  #creating: Promise<void> | undefined;

  /** @param create - the SQL that creates them; nothing when that is somebody else's task */
  constructor(
    private readonly connections: Sender,
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
      return await this.#askAgain(text, values, until);
    } catch (error) {
      throw forPeople(error, this.name, secrets);
    }
  }

  /** What was not done because of a missing table, or because others were in its way, is sent again as it was. */
  async #askAgain(text: string, values: readonly unknown[], until: number): Promise<Row[]> {
    for (let isCreated = false; ;) {
      try {
        return await this.connections.ask(text, values, until);
      } catch (error) {
        if (isMissingTable(error) && this.create !== undefined && !isCreated) {
          isCreated = true;
          await this.#createOnce(until);
        } else if (!isCollision(error) || performance.now() >= until) throw error;
      }
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
