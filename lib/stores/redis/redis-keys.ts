import { unqualify } from '../../lease/key.js';

/**
 * The names of a lease in Redis. All of them share the hash tag of the user's key, so that a cluster keeps them on
 * one node, and no key can close the tag and reach another lease (rule 14).
 */
export class RedisKeys {
  /** The record of the lease. */
  readonly lease: string;

  constructor(qualified: string) {
    this.lease = leaseName(qualified);
  }

  /** Those who wait for it. */
  get line(): string {
    return `${this.lease}:line`;
  }

  get permits(): string {
    return `${this.lease}:permits`;
  }

  /** Who has the permits. */
  get holders(): string {
    return `${this.lease}:holders`;
  }

  mark(once: string): string {
    return `${this.lease}:once:${escape(once)}`;
  }
}

let last: { readonly qualified: string; readonly keys: RedisKeys } | undefined;

/** Who takes a lease gives it back, most often before anybody asks for another. */
export function redisKeys(qualified: string): RedisKeys {
  if (last?.qualified !== qualified) last = { qualified, keys: new RedisKeys(qualified) };
  return last.keys;
}

const SPECIAL = /[%{}]/;

const escape = (text: string): string =>
  SPECIAL.test(text)
    ? text.replace(/[%{}]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    : text;

const unescape = (text: string): string =>
  text.replace(/%(25|7B|7D)/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));

/** Nothing between braces is no hash tag. A `%` alone is how no key is written. */
const EMPTY = '%';

function leaseName(qualified: string): string {
  // Whoever uses the store by itself may have no namespace; the engine always has one.
  if (!qualified.includes('/')) return `{${escape(qualified) || EMPTY}}`;
  const { namespace, key } = unqualify(qualified);
  return `${escape(namespace)}:{${escape(key) || EMPTY}}`;
}

/** The qualified key of a lease's name, or nothing when it is the name of something else. */
export function qualifiedKey(lease: string): string | undefined {
  const match = /^(?:([^{}]*):)?\{([^{}]*)\}$/s.exec(lease);
  if (match === null) return undefined;
  const [, namespace, tag] = match;
  const key = tag === EMPTY ? '' : unescape(tag!);
  return namespace === undefined ? key : `${unescape(namespace)}/${key}`;
}

/** A SCAN pattern for the leases whose qualified key begins with `prefix`. */
export function scanPattern(keyPrefix: string, prefix: string): string {
  if (!prefix.includes('/')) return `${literal(keyPrefix)}*{*}`;
  const { namespace, key } = unqualify(prefix);
  return `${literal(`${keyPrefix}${escape(namespace)}:{${escape(key)}`)}*}`;
}

const literal = (text: string): string => text.replace(/[\\*?[\]]/g, (char) => `\\${char}`);
