import { createHash } from 'node:crypto';

/** From `key` up to, without, `range_end`: as etcd takes it, in base64. */
export interface KeyRange {
  readonly key: string;
  readonly range_end: string;
}

// A key has no control characters (rule 14), so a tab ends it, and all that begins with the key and a tab is its own.
const END = '\t';
const AFTER_END = '\n';

/**
 * The names of leases in etcd:
 *
 *     <prefix>held/<key> TAB <hash>         who holds it: one name for each holder
 *     <prefix>held/<key> TAB <hash>-kept    a place that stays taken after its release
 *     <prefix>done/<key> TAB <once>         a unit of work that is done
 *
 * An owner token does not leave this process: names carry its hash, so that neither etcd's data nor its log tells
 * it (rule 15).
 */
export class EtcdNames {
  constructor(private readonly prefix: string) {}

  /** All holders of a key. */
  holders(key: string): KeyRange {
    const held = this.#held(key);
    return { key: base64(held + END), range_end: base64(held + AFTER_END) };
  }

  holder(key: string, token: string): string {
    return base64(`${this.#held(key)}${END}${hashOf(token)}`);
  }

  kept(key: string, token: string): string {
    return base64(`${this.#held(key)}${END}${hashOf(token)}-kept`);
  }

  mark(key: string, once: string): string {
    return base64(`${this.prefix}done/${key}${END}${once}`);
  }

  /** All holders of all keys that begin so. */
  beginningWith(beginning: string): KeyRange {
    const from = Buffer.from(this.#held(beginning));
    const to = Buffer.from(from);
    // Never 0xff in UTF-8.
    to[to.length - 1]! += 1;
    return { key: from.toString('base64'), range_end: to.toString('base64') };
  }

  /** The key of a holder's name, or nothing when it is the name of something else. */
  keyOf(name: Buffer): string | undefined {
    const text = name.toString();
    const end = text.lastIndexOf(END);
    const held = this.#held('');
    return end < 0 || !text.startsWith(held) ? undefined : text.slice(held.length, end);
  }

  #held(key: string): string {
    return `${this.prefix}held/${key}`;
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

const hashOf = (token: string): string =>
  createHash('sha256').update(token).digest('hex').slice(0, 32);
