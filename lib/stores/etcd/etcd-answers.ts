/** Reading what a server sent: whatever it is, it is an answer or throws. Numbers of 64 bits come as text. */
export type Json = Readonly<Record<string, unknown>>;

export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

export function objectOf(value: unknown): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnreadableError();
  }
  return value as Json;
}

/** What is empty is left out. */
export function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new UnreadableError();
  return value;
}

/** What is zero is left out. */
export function integerOf(value: unknown): number {
  if (value === undefined) return 0;
  const isText = typeof value === 'string' && /^-?\d{1,19}$/.test(value);
  const number = isText ? Number(value) : value;
  if (!Number.isSafeInteger(number)) throw new UnreadableError();
  return number as number;
}

/** Of a lease or a cluster: beyond what a number can hold, so it stays a text. */
export function idOf(value: unknown): string {
  if (value === undefined) return '0';
  if (typeof value !== 'string' || !/^-?\d{1,20}$/.test(value)) throw new UnreadableError();
  return value;
}

export function bytesOf(value: unknown): Buffer {
  if (value === undefined) return Buffer.alloc(0);
  if (typeof value !== 'string') throw new UnreadableError();
  return Buffer.from(value, 'base64');
}

/** Where and when an answer was given: the revision of the data, and the term of the leader that the member knew. */
export interface Header {
  readonly cluster: string;
  readonly revision: number;
  readonly term: number;
}

export function headerOf(answer: Json): Header {
  const header = objectOf(answer['header']);
  const [revision, term] = [integerOf(header['revision']), integerOf(header['raft_term'])];
  if (revision <= 0 || term <= 0) throw new UnreadableError();
  return { cluster: idOf(header['cluster_id']), revision, term };
}

export interface KeyValue {
  readonly name: Buffer;
  readonly value: Buffer;
  readonly lease: string;
  readonly createRevision: number;
  readonly modRevision: number;
}

export function keyValueOf(value: unknown): KeyValue {
  const kv = objectOf(value);
  const createRevision = integerOf(kv['create_revision']);
  const modRevision = integerOf(kv['mod_revision']);
  if (createRevision <= 0 || modRevision < createRevision) throw new UnreadableError();
  return {
    name: bytesOf(kv['key']),
    value: bytesOf(kv['value']),
    lease: idOf(kv['lease']),
    createRevision,
    modRevision,
  };
}

/** What a transaction did: its branch, and for each step of it what was found or deleted. */
export interface TxnAnswer extends Header {
  readonly succeeded: boolean;
  readonly found: readonly (readonly KeyValue[])[];
}

export function txnOf(value: unknown): TxnAnswer {
  const answer = objectOf(value);
  const { succeeded = false } = answer;
  if (typeof succeeded !== 'boolean') throw new UnreadableError();
  const found = listOf(answer['responses']).map((response) => {
    const step = objectOf(response);
    const { response_range: range, response_delete_range: deleted, response_put: put } = step;
    if (range !== undefined) return listOf(objectOf(range)['kvs']).map(keyValueOf);
    if (deleted !== undefined) return listOf(objectOf(deleted)['prev_kvs']).map(keyValueOf);
    objectOf(put);
    return [];
  });
  return { ...headerOf(answer), succeeded, found };
}
