import { BAD_DECORATOR_OPTION, EMPTY_KEYS } from '../lease.messages.js';
import { assertKey } from '../lease/key.js';

/** What a decorator was given as a key, or a key function returned: a complaint names the method. */
export function assertMethodKey(
  key: unknown,
  method: string,
  what?: string,
): asserts key is string | readonly string[] {
  try {
    if (!Array.isArray(key)) return assertKey(key, what);
    if (key.length === 0) throw new RangeError(EMPTY_KEYS());
    for (const one of key) assertKey(one, what);
  } catch (error) {
    const Kind = error instanceof RangeError ? RangeError : TypeError;
    throw new Kind(BAD_DECORATOR_OPTION(method, (error as Error).message));
  }
}
