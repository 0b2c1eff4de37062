import { BAD_KEY, BAD_NAMESPACE, EMPTY_KEYS } from '../lease.messages.js';

const MAX_KEY_BYTES = 512;
const CONTROL_CHARACTER = /\p{Cc}/u;
/** What nearly every key is made of: nothing in it can be wrong. */
const PLAIN = /^[\x20-\x7e]+$/;
/** Leaderships are kept in a namespace beside each: no other may be it. */
const NAMESPACE = /^(?!.*:election$)[\w.:-]{1,100}$/;

/** Rule 14: a key is data. Says what is wrong with it, or lets it pass. */
export function assertKey(key: unknown, what = 'key'): asserts key is string {
  if (typeof key !== 'string') throw new TypeError(BAD_KEY(what, key, 'is not a string'));
  if (key.length <= MAX_KEY_BYTES && PLAIN.test(key)) return;
  if (key === '') throw new RangeError(BAD_KEY(what, key, 'is empty'));
  if (CONTROL_CHARACTER.test(key)) {
    throw new RangeError(BAD_KEY(what, key, 'has a control character in it'));
  }
  // A lone surrogate becomes U+FFFD on the wire: two different keys would meet there.
  if (/\p{Surrogate}/u.test(key)) {
    throw new RangeError(BAD_KEY(what, key, 'is not well-formed Unicode'));
  }
  if (key.length > MAX_KEY_BYTES / 3 && Buffer.byteLength(key) > MAX_KEY_BYTES) {
    throw new RangeError(BAD_KEY(what, key, `is longer than ${MAX_KEY_BYTES} bytes`));
  }
}

/** What a lease is to be on: what people call it, and what the store does. */
export interface Target {
  readonly key: string;
  readonly qualified: string;
}

/** One key or several, checked, sorted and without repetition: everybody takes them in the same order. */
export function toTargets(namespace: string, key: string | readonly string[]): readonly Target[] {
  if (!Array.isArray(key)) {
    assertKey(key);
    return [{ key, qualified: qualify(namespace, key) }];
  }
  if (key.length === 0) throw new RangeError(EMPTY_KEYS());
  for (const one of key) assertKey(one);
  const keys = [...new Set(key as string[])].toSorted();
  return keys.map((one) => ({ key: one, qualified: qualify(namespace, one) }));
}

/** Elections have a namespace of their own: no user's key is ever a leadership. */
export const toElectionTarget = (namespace: string, group: string): Target => ({
  key: `election:${group}`,
  qualified: qualify(`${namespace}:election`, group),
});

export function assertNamespace(namespace: unknown): asserts namespace is string {
  if (typeof namespace !== 'string' || !NAMESPACE.test(namespace)) {
    throw new TypeError(BAD_NAMESPACE(namespace));
  }
}

/** A namespace holds no slash, so the first one ends it and no key can reach into another namespace. */
export const qualify = (namespace: string, key: string): string => `${namespace}/${key}`;

export function unqualify(qualified: string): { namespace: string; key: string } {
  const slash = qualified.indexOf('/');
  return { namespace: qualified.slice(0, slash), key: qualified.slice(slash + 1) };
}
