import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { qualifiedKey, redisKeys, scanPattern } from '../../../../lib/stores/redis/redis-keys.js';

/** Rich in what could be mistaken for syntax. */
const text = fc.string({ unit: fc.constantFrom(...'{}%/:*?[]\\^-x7BD2 é🔑'), minLength: 1 });
const qualified = fc.oneof(
  text,
  fc.tuple(text, text).map(([space, key]) => `${space}/${key}`),
);

/** All names that one key has, with one unit of work. */
const namesOf = (key: string, once: string): string[] => {
  const keys = redisKeys(key);
  return [keys.lease, keys.line, keys.permits, keys.holders, keys.mark(once)];
};

describe('The names of a lease in Redis', () => {
  it('are readable for a plain key', () => {
    const keys = redisKeys('lease/order:42');
    expect([keys.lease, keys.line, keys.permits, keys.holders, keys.mark('tick')]).toEqual([
      'lease:{order:42}',
      'lease:{order:42}:line',
      'lease:{order:42}:permits',
      'lease:{order:42}:holders',
      'lease:{order:42}:once:tick',
    ]);
  });

  it('are read back as the key they were made from (rule 14)', () => {
    fc.assert(fc.property(qualified, (key) => qualifiedKey(redisKeys(key).lease) === key));
  });

  it('never meet those of another key or of another kind (rule 14)', () => {
    fc.assert(
      fc.property(qualified, qualified, text, (one, other, once) => {
        fc.pre(one !== other);
        const names = [one, other].flatMap((key) => namesOf(key, once));
        expect(new Set(names).size).toBe(10);
      }),
    );
  });

  it('all have the key, and nothing but the key, as their hash tag (rule 14)', () => {
    const tag = (name: string): string | undefined => /^[^{]*\{([^}]+)\}/.exec(name)?.[1];
    fc.assert(
      fc.property(qualified, text, (key, once) => {
        fc.pre(!key.endsWith('/') || key.slice(0, -1).includes('/'));
        const tags = namesOf(key, once).map(tag);
        expect(tags[0]).toBeDefined();
        expect(new Set(tags).size).toBe(1);
      }),
    );
  });

  it('of waiters, of permits and of units of work are no leases', () => {
    const [, ...others] = namesOf('lease/a', '{x}');
    for (const name of [...others, 'other', '']) expect(qualifiedKey(name)).toBeUndefined();
  });
});

describe('A pattern for SCAN', () => {
  it('names the beginning of a key literally', () => {
    expect(scanPattern('', 'lease/a*{')).toBe('lease:{a\\*%7B*}');
    expect(scanPattern('app[1]:', 'lease/')).toBe('app\\[1\\]:lease:{*}');
    expect(scanPattern('app:', '')).toBe('app:*{*}');
  });
});
