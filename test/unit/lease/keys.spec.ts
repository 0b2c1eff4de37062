import { describe, expect, it } from '@jest/globals';
import {
  assertNamespace,
  qualify,
  toElectionTarget,
  toTargets,
  unqualify,
} from '../../../lib/lease/key.js';
import { BAD_KEY, BAD_NAMESPACE } from '../../../lib/lease.messages.js';
import { World } from './world.js';

describe('a key', () => {
  it.each([
    'a',
    'order:42',
    '{order}:42',
    '}{',
    '{}',
    'a/b/c',
    '../a',
    '/',
    ' ',
    '*',
    '[a-z]?',
    '\\',
    '"',
    '%00',
    '__proto__',
    'constructor',
    'ключ',
    '鍵',
    '🔑',
    'e\u0301',
    'x'.repeat(512),
    'é'.repeat(256),
  ])('%p is data, and is its own (rule 14)', async (key) => {
    const { engine, store, memory } = new World();
    const lease = await engine.acquire(key);
    expect(lease.key).toBe(key);
    expect(store.claims[0]!.key).toBe(`test/${key}`);
    expect(await engine.tryAcquire(key)).toBeNull();
    expect(await engine.tryAcquire(`x${key.slice(2)}`)).not.toBeNull();
    expect((await engine.inspect(key))!.key).toBe(key);
    expect(await lease.release()).toBe('released');
    expect(await memory.inspect(`test/${key}`)).toBeNull();
  });

  it.each([
    ['', 'is empty'],
    ['a\0b', 'has a control character in it'],
    ['a\nb', 'has a control character in it'],
    ['\u007f', 'has a control character in it'],
    ['\u0085', 'has a control character in it'],
    ['a\ud800', 'is not well-formed Unicode'],
    ['\udc00b', 'is not well-formed Unicode'],
    ['x'.repeat(513), 'is longer than 512 bytes'],
    ['é'.repeat(257), 'is longer than 512 bytes'],
    ['鍵'.repeat(171), 'is longer than 512 bytes'],
  ])('%p is refused: it %s (rule 14)', async (key, why) => {
    const { engine, store } = new World();
    const error = new RangeError(BAD_KEY('key', key, why));
    await expect(engine.acquire(key)).rejects.toThrow(error);
    await expect(engine.tryAcquire(['ok', key])).rejects.toThrow(error);
    await expect(engine.inspect(key)).rejects.toThrow(error);
    expect(store.claims).toHaveLength(0);
  });

  it.each([undefined, null, 7, {}, true, Symbol('k'), new String('k')])(
    'that is %p is refused: it is no string (rule 14)',
    async (key) => {
      const { engine } = new World();
      await expect(engine.acquire(key as never)).rejects.toBeInstanceOf(TypeError);
      await expect(engine.acquire([key] as never)).rejects.toBeInstanceOf(TypeError);
    },
  );

  it('of one namespace never reaches into another (rule 14)', async () => {
    const world = new World();
    const [a, b] = [world.rival({ namespace: 'a' }), world.rival({ namespace: 'a:b' })];
    await a.acquire('b/k');
    expect(await b.tryAcquire('k')).not.toBeNull();
    expect(await a.tryAcquire('k')).not.toBeNull();
    expect(unqualify(qualify('a', 'b/k'))).toEqual({ namespace: 'a', key: 'b/k' });
  });

  it('of a user is never a leadership (rule 14)', () => {
    const election = toElectionTarget('lease', 'g');
    for (const key of ['g', 'election:g', ':election/g', 'election/g']) {
      expect(toTargets('lease', key)[0]!.qualified).not.toBe(election.qualified);
    }
  });

  it.each(['', 'a/b', 'a b', 'ä', 'x'.repeat(101), '{a}', undefined, 7, null])(
    'cannot be put under the namespace %p (rule 14)',
    (namespace) => {
      expect(() => assertNamespace(namespace)).toThrow(new TypeError(BAD_NAMESPACE(namespace)));
    },
  );

  it.each(['lease', 'my-app.v2:eu_1', 'x'.repeat(100)])(
    'can be put under the namespace %p',
    (namespace) => {
      expect(() => assertNamespace(namespace)).not.toThrow();
    },
  );
});
