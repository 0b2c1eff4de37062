import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { LeaseEvent } from '../../../lib/lease/events.js';
import { answer, fail, hang } from '../../support/scripted-store.js';
import { settle } from '../../support/virtual-clock.js';
import { TRUSTED, World } from './world.js';

const TOKEN = 'c0ffee00-dead-4bee-8fee-0123456789ab';

/** Everything that a logger, a debugger or a serializer could make of it. */
function shown(value: unknown): string {
  return [
    String(value),
    JSON.stringify(value),
    JSON.stringify(value, Object.getOwnPropertyNames(Object(value))),
    inspect(value),
    inspect(value, { depth: 10, showHidden: true }),
    inspect(value, { depth: 10, showHidden: true, getters: true, showProxy: true }),
    value instanceof Error ? `${value.stack} ${inspect(value.cause, { depth: 10 })}` : '',
  ].join('\n');
}

describe('the owner token', () => {
  it('is in nothing that can be seen of a lease, held, released or lost (rule 15)', async () => {
    const { engine, clock } = new World({ token: () => TOKEN });
    const lease = await engine.acquire('k', { renew: false });
    void lease.signal;
    expect(shown(lease)).not.toContain(TOKEN);
    await clock.advance(TRUSTED);
    expect(shown(lease)).not.toContain(TOKEN);
    expect(shown(lease.signal.reason)).not.toContain(TOKEN);
    const other = await engine.acquire('other');
    await other.release();
    expect(shown(other)).not.toContain(TOKEN);
  });

  it('is in no event (rule 15)', async () => {
    const world = new World({ token: () => TOKEN });
    const lease = await world.engine.acquire('a');
    await world.engine.acquire('b', { renew: false });
    await world.engine.tryAcquire('a');
    world.store.next('renew', fail(new Error('1')), answer(['nonsense']));
    world.store.next('acquire', answer({ granted: true, token: TOKEN }));
    await world.engine.tryAcquire('c').catch(() => {});
    await world.clock.advance(TRUSTED);
    await lease.release();
    const types = new Set(world.events.map(({ type }) => type));
    const expected: LeaseEvent['type'][] = [
      'acquired',
      'lost',
      'refused',
      'released',
      'renewal-failed',
      'renewed',
    ];
    expect([...types].toSorted()).toEqual(expected);
    for (const event of world.events) expect(shown(event)).not.toContain(TOKEN);
  });

  it('is in no exception (rule 15)', async () => {
    const world = new World({ token: () => TOKEN });
    const errors: unknown[] = [];
    const collect = (error: unknown): void => void errors.push(error);
    const lease = await world.engine.acquire('k');
    await world.rival().acquire('held');
    await world.engine.acquire('held').catch(collect);
    world.store.next('acquire', fail(new Error('down')));
    await world.engine.acquire('other').catch(collect);
    world.store.next('acquire', answer(TOKEN.slice(0, 8)));
    await world.engine.acquire('other').catch(collect);
    world.store.next('renew', fail(new Error('down')));
    await lease.renew().catch(collect);
    await world.engine.run('once', () => {}, { once: 'job' });
    await world.engine.acquire('once', { once: 'job' }).catch(collect);
    world.store.always('renew', hang);
    await world.clock.advance(2 * TRUSTED);
    await lease.renew().catch(collect);
    await settle();
    expect(errors).toHaveLength(6);
    for (const error of errors) expect(shown(error)).not.toContain(TOKEN);
  });

  it('is seen by people as its beginning only (rule 15)', async () => {
    const { engine } = new World({ token: () => TOKEN });
    await engine.acquire('k');
    const record = await engine.inspect('k');
    expect(record!.holders[0]!.owner).toBe(TOKEN.slice(0, 8));
    expect(shown(record)).not.toContain(TOKEN);
  });

  it('is another for every acquisition, and cannot be guessed (rule 15)', async () => {
    const { engine, store } = new World();
    for (let i = 0; i < 100; i++) await engine.acquire(`k${i}`);
    const tokens = store.claims.map(({ token }) => token);
    expect(new Set(tokens).size).toBe(100);
    for (const token of tokens) expect(token).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('does not keep people from seeing what they need of a lease', async () => {
    const { engine } = new World();
    const lease = await engine.acquire('k');
    expect(JSON.parse(JSON.stringify(lease))).toEqual({
      key: 'k',
      fence: lease.fence,
      ttl: 6_000,
      isHeld: true,
      remaining: TRUSTED,
    });
  });
});
