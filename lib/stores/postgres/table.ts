import { BAD_POSTGRES_TABLE } from '../../lease.messages.js';

/** Of PostgreSQL's 63 bytes, as many as leave room for the longest name that is made from it. */
const NAME = /^[A-Za-z_][A-Za-z0-9_$]{0,49}$/;

/** The names of a table and of what belongs to it: quoted, so that no word of SQL is in the way (rule 14). */
export interface Table {
  /** As the user wrote it, for people. */
  readonly name: string;
  readonly leases: string;
  /** The units of work that are done. */
  readonly done: string;
}

export function tableOf(name: unknown): Table {
  const parts = typeof name === 'string' ? name.split('.') : [];
  if (typeof name !== 'string' || parts.length > 2 || !parts.every((part) => NAME.test(part))) {
    throw new TypeError(BAD_POSTGRES_TABLE(name));
  }
  const quoted = (suffix: string): string => {
    const last = `${parts.at(-1)}${suffix}`;
    return [...parts.slice(0, -1), last].map((part) => `"${part}"`).join('.');
  };
  return { name, leases: quoted(''), done: quoted('_done') };
}
