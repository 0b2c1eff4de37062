import { describe, expect, it } from '@jest/globals';
import { BAD_OPTIONS, NO_PERMITS, UNKNOWN_OPTION } from '../../../lib/lease.messages.js';
import type { LeaseOptions } from '../../../lib/lease.options.js';
import { World } from './world.js';

const NONSENSE: [keyof LeaseOptions, unknown, typeof TypeError | typeof RangeError][] = [
  ...(['ttl', 'wait', 'minHold', 'maxHold', 'remember'] as const).flatMap((option) =>
    ['', 'soon', '10', '10 s', '-1s', Number.NaN, null, true, {}, [], 10n].map(
      (value): [keyof LeaseOptions, unknown, typeof TypeError] => [option, value, TypeError],
    ),
  ),
  ['ttl', 0, RangeError],
  ['ttl', 0.5, RangeError],
  ['ttl', -1, RangeError],
  ['ttl', '25h', RangeError],
  ['ttl', Infinity, RangeError],
  ['wait', -1, RangeError],
  ['minHold', -1, RangeError],
  ['minHold', Infinity, RangeError],
  ['maxHold', 0, RangeError],
  ['maxHold', -1, RangeError],
  ['maxHold', Infinity, RangeError],
  ['remember', 0, RangeError],
  ['remember', '4000d', RangeError],
  ['permits', 0, RangeError],
  ['permits', -1, RangeError],
  ['permits', 10_001, RangeError],
  ['permits', 1.5, TypeError],
  ['permits', '2', TypeError],
  ['permits', null, TypeError],
  ['permits', Number.NaN, TypeError],
  ['permits', Infinity, TypeError],
  ['renew', 'yes', TypeError],
  ['renew', 0, TypeError],
  ['renew', null, TypeError],
  ['awaitRelease', 'yes', TypeError],
  ['awaitRelease', 1, TypeError],
  ['awaitRelease', null, TypeError],
  ['signal', {}, TypeError],
  ['signal', new AbortController(), TypeError],
  ['signal', null, TypeError],
  ['once', 7, TypeError],
  ['once', null, TypeError],
  ['once', '', RangeError],
  ['once', 'a\nb', RangeError],
  ['once', 'x'.repeat(513), RangeError],
];

describe('an option', () => {
  it.each(NONSENSE)(
    '%s: %p is an error that names it, and nothing is asked',
    async (option, value, type) => {
      const { engine, store } = new World();
      for (const call of [
        () => engine.acquire('k', { [option]: value }),
        () => engine.tryAcquire('k', { [option]: value }),
        () => engine.run('k', () => {}, { [option]: value }),
      ]) {
        const error = await call().then(
          () => undefined,
          (thrown: Error) => thrown,
        );
        expect(error).toBeInstanceOf(type);
        expect(error!.message).toMatch(new RegExp(`\\b${option}\\b`));
      }
      expect(store.claims).toHaveLength(0);
    },
  );

  it('that does not exist is an error that lists those that do', async () => {
    const { engine } = new World();
    const known = [
      'ttl',
      'wait',
      'signal',
      'renew',
      'minHold',
      'maxHold',
      'permits',
      'once',
      'remember',
      'awaitRelease',
    ];
    const asked = engine.acquire('k', { tll: 5 } as never);
    await expect(asked).rejects.toThrow(new TypeError(UNKNOWN_OPTION('tll', known)));
    await expect(engine.acquire('k', { toString: 1 } as never)).rejects.toThrow(TypeError);
  });

  it.each([null, 7, 'ttl', true])('object that is %p is an error', async (options) => {
    const { engine } = new World();
    const message = BAD_OPTIONS(options);
    await expect(engine.acquire('k', options as never)).rejects.toThrow(new TypeError(message));
    await expect(engine.tryAcquire('k', options as never)).rejects.toThrow(new TypeError(message));
  });

  it('that is undefined has its default', async () => {
    const { engine, store } = new World({ ttl: 9_000 });
    await engine.acquire('k', {
      ttl: undefined,
      wait: undefined,
      signal: undefined,
      renew: undefined,
      permits: undefined,
      once: undefined,
      maxHold: undefined,
      awaitRelease: undefined,
    } as never);
    expect(store.claims[0]).toMatchObject({ ttl: 9_000, permits: 1 });
    expect(store.claims[0]).not.toHaveProperty('once');
  });

  it('of the module is used where a call names none, but tryAcquire does not wait by default', async () => {
    const world = new World({ wait: 1_000 });
    await world.rival().acquire('k');
    expect(await world.engine.tryAcquire('k')).toBeNull();
    const waiting = world.engine.acquire('k').catch((error: unknown) => error);
    await world.clock.advance(1_000);
    expect(await waiting).toMatchObject({ code: 'LEASE_HELD' });
    expect(world.of('refused')).toHaveLength(2);
  });

  it('`permits` is an error at a store that has none, at once', async () => {
    const { engine } = new World({}, { permits: false });
    await expect(engine.acquire('k', { permits: 2 })).rejects.toThrow(
      new RangeError(NO_PERMITS('scripted')),
    );
    expect(await engine.tryAcquire('k', { permits: 1 })).not.toBeNull();
  });

  it('`ttl` of the module that does not fit the store is an error at start', () => {
    expect(() => new World({ ttl: 10 }, { minTtl: 50 })).toThrow('"ttl"');
  });
});
