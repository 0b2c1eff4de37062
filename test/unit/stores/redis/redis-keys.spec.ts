import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { qualifiedKey, redisKeys, scanPattern } from '../../../../lib/stores/redis/redis-keys.js';

/** Rich in what could be mistaken for syntax. */
const text = fc.string({ unit: fc.constantFrom(...'{}%/:*?[]\\^-x7BD2 é🔑'), minLength: 1 });
const qualified = fc.oneof(
  text,
  fc.tuple(text, text).map(([space, key]) => `${space}/${key}`),
);

describe('The names of a lease in Redis', () => {
  it('are readable for a plain key', () => {
    const { lease, permits, mark } = redisKeys('lease/order:42');
    expect([lease, permits, mark('tick')]).toEqual([
      'lease:{order:42}',
      'lease:{order:42}:permits',
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
        const names = [one, other].flatMap((key) => {
          const { lease, permits, mark } = redisKeys(key);
          return [lease, permits, mark(once)];
        });
        expect(new Set(names).size).toBe(6);
      }),
    );
  });

  it('all have the key, and nothing but the key, as their hash tag (rule 14)', () => {
    const tag = (name: string): string | undefined => /^[^{]*\{([^}]+)\}/.exec(name)?.[1];
    fc.assert(
      fc.property(qualified, text, (key, once) => {
        fc.pre(!key.endsWith('/') || key.slice(0, -1).includes('/'));
        const { lease, permits, mark } = redisKeys(key);
        const tags = [lease, permits, mark(once)].map(tag);
        expect(tags[0]).toBeDefined();
        expect(new Set(tags).size).toBe(1);
      }),
    );
  });

  it('of permits and of units of work are no leases', () => {
    const { permits, mark } = redisKeys('lease/a');
    expect([permits, mark('{x}'), 'other', ''].map(qualifiedKey)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('A pattern for SCAN', () => {
  it('names the beginning of a key literally', () => {
    expect(scanPattern('', 'lease/a*{')).toBe('lease:{a\\*%7B*}');
    expect(scanPattern('app[1]:', 'lease/')).toBe('app\\[1\\]:lease:{*}');
    expect(scanPattern('app:', '')).toBe('app:*{*}');
  });
});
