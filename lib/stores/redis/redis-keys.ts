import { unqualify } from '../../lease/key.js';

/**
 * The names of a lease in Redis. All of them share the hash tag of the user's key, so that a cluster keeps them on
 * one node, and no key can close the tag and reach another lease (rule 14).
 */
export interface RedisKeys {
  readonly lease: string;
  readonly permits: string;
  mark(once: string): string;
}

const escape = (text: string): string =>
  text.replace(/[%{}]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

const unescape = (text: string): string =>
  text.replace(/%(25|7B|7D)/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));

export function redisKeys(qualified: string): RedisKeys {
  const { namespace, key } = unqualify(qualified);
  const lease = `${namespace}:{${escape(key)}}`;
  return {
    lease,
    permits: `${lease}:permits`,
    mark: (once) => `${lease}:once:${escape(once)}`,
  };
}

/** The qualified key of a lease's name, or nothing when it is the name of something else. */
export function qualifiedKey(lease: string): string | undefined {
  const match = /^([^{}]*):\{([^{}]*)\}$/s.exec(lease);
  return match ? `${match[1]}/${unescape(match[2]!)}` : undefined;
}

/** A SCAN pattern for the leases whose qualified key begins with `prefix`. */
export function scanPattern(keyPrefix: string, prefix: string): string {
  const slash = prefix.indexOf('/');
  if (slash < 0) return `${literal(keyPrefix + prefix)}*:{*}`;
  const { namespace, key } = unqualify(prefix);
  return `${literal(`${keyPrefix}${namespace}:{${escape(key)}`)}*}`;
}

const literal = (text: string): string => text.replace(/[\\*?[\]]/g, (char) => `\\${char}`);
