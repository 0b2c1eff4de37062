import { txnOf, UnreadableError, type TxnAnswer } from './etcd-answers.js';
import type { Answer, EtcdClient } from './etcd-client.js';
import type { KeyRange } from './etcd-names.js';

/** Of one name, or of every name in a range: of none at all it is as of one with the revision 0. */
type At = { readonly key: string; readonly range_end?: string };

export const isUnchanged = (key: string, modRevision: number): object => ({
  key,
  target: 'MOD',
  result: 'EQUAL',
  mod_revision: `${modRevision}`,
});

export const isMissing = (key: string): object => ({
  key,
  target: 'CREATE',
  result: 'EQUAL',
  create_revision: '0',
});

export const isThere = (key: string): object => ({
  key,
  target: 'CREATE',
  result: 'GREATER',
  create_revision: '0',
});

/** Nothing was put there for the first time after that revision. */
export const isNoneNewer = (range: KeyRange, revision: number): object => ({
  ...range,
  target: 'CREATE',
  result: 'LESS',
  create_revision: `${revision + 1}`,
});

export const get = (at: At): object => ({ request_range: at });
export const put = (key: string, value: string, lease: string): object => ({
  request_put: { key, value, lease },
});
/** Tells what it deleted. */
export const take = (key: string): object => ({ request_delete_range: { key, prev_kv: true } });

export interface Txn {
  /** All of them, or else the other branch. */
  readonly compare?: readonly object[];
  readonly success: readonly object[];
  readonly failure?: readonly object[];
}

/** One atomic step (rule 1), by a quorum: also when it only reads. */
export function transact(client: EtcdClient, txn: Txn, until: number): Promise<Answer<TxnAnswer>> {
  const read = (value: unknown): TxnAnswer => {
    const answer = txnOf(value);
    // Without a condition there is no other branch.
    if (!answer.succeeded && txn.compare === undefined) throw new UnreadableError();
    const steps = answer.succeeded ? txn.success : (txn.failure ?? []);
    if (answer.found.length !== steps.length) throw new UnreadableError();
    return answer;
  };
  return client.ask('v3/kv/txn', txn, read, until);
}
