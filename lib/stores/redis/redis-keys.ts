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

function leaseName(qualified: string): string {
  // Whoever uses the store by itself may have no namespace; the engine always has one.
  if (!qualified.includes('/')) return `{${escape(qualified)}}`;
  const { namespace, key } = unqualify(qualified);
  return `${escape(namespace)}:{${escape(key)}}`;
}

export function redisKeys(qualified: string): RedisKeys {
  const lease = leaseName(qualified);
  return {
    lease,
    permits: `${lease}:permits`,
    mark: (once) => `${lease}:once:${escape(once)}`,
  };
}

/** The qualified key of a lease's name, or nothing when it is the name of something else. */
export function qualifiedKey(lease: string): string | undefined {
  const match = /^(?:([^{}]*):)?\{([^{}]*)\}$/s.exec(lease);
  if (match === null) return undefined;
  const [, namespace, key] = match;
  return namespace === undefined ? unescape(key!) : `${unescape(namespace)}/${unescape(key!)}`;
}

/** A SCAN pattern for the leases whose qualified key begins with `prefix`. */
export function scanPattern(keyPrefix: string, prefix: string): string {
  if (!prefix.includes('/')) return `${literal(keyPrefix)}*{*}`;
  const { namespace, key } = unqualify(prefix);
  return `${literal(`${keyPrefix}${escape(namespace)}:{${escape(key)}`)}*}`;
}

const literal = (text: string): string => text.replace(/[\\*?[\]]/g, (char) => `\\${char}`);
