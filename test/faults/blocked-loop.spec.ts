import { dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import {
  BlockingHolder,
  redisPlan,
  type BlockingHolderOptions,
} from '../support/blocking-process.js';
import { claimOf } from '../support/claims.js';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

const TTL = 1_000;
const support = join(dirname(fileURLToPath(import.meta.url)), '../support');

describe('A process that blocks its event loop', () => {
  let server: RedisServer;
  let lib: CompiledLib;
  let store: RedisLeaseStore;
  let holder: BlockingHolder;

  beforeAll(async () => {
    [server, lib] = await Promise.all([startRedis(), compileLib()]);
    store = new RedisLeaseStore(server.url);
    await store.open();
  });
  afterEach(() => holder.kill());
  afterAll(async () => {
    await store.close();
    await lib.remove();
    await server.stop();
  });

  /** Resolves when it is held and was renewed at least once. */
  const hold = async (key: string, more: Partial<BlockingHolderOptions> = {}): Promise<void> => {
    holder = await BlockingHolder.start({
      lib,
      store: redisPlan(server.url),
      key,
      ttl: TTL,
      ...more,
    });
    await holder.hears('renewed');
  };

  /** As the next owner would. */
  const takeOver = async (key: string): Promise<number> => {
    const claim = claimOf(`lease/${key}`);
    const grant = await until(async () => {
      const answer = await store.acquire(claim);
      return answer.granted ? answer : undefined;
    });
    return grant.fence;
  };

  it('for longer than the ttl loses the lease, and knows when it wakes (rule 4)', async () => {
    await hold('without');
    holder.tell(`block ${3 * TTL}`);
    const successor = await takeOver('without');
    const woke = await holder.hears('woke');
    expect(woke.isHeld).toBe(false);
    expect(successor).toBeGreaterThan(holder.fence);
    expect(await holder.hears('lost')).toMatchObject({ reason: 'expired' });
  });

  it('and comes near the end of its trust is told that it lags', async () => {
    await hold('lagging', { ttl: 2 * TTL });
    holder.tell(`block ${TTL}`);
    expect((await holder.hears('woke')).isHeld).toBe(true);
    await holder.hears('lagging');
    expect(holder.heard('lost')).toBeUndefined();
  });

  it('and renews in a thread holds the lease all the time', async () => {
    await hold('with', { hungAfter: 30_000 });
    holder.tell(`block ${3 * TTL}`);
    await holder.hears('blocked');
    const claim = claimOf('lease/with');
    const answers = new Set<boolean>();
    await until(async () => {
      answers.add((await store.acquire(claim)).granted);
      return holder.heard('woke');
    });
    expect([...answers]).toEqual([false]);
    expect(holder.heard('woke')).toEqual({ said: 'woke', isHeld: true, fence: holder.fence });
    holder.tell('act');
    expect(await holder.hears('acted')).toMatchObject({ fence: holder.fence });
    expect(holder.errors).toBe('');
  });

  it('and renews in a thread loses the lease after a bound, and knows when it wakes (rule 4)', async () => {
    const hungAfter = 1_000;
    await hold('hung', { hungAfter });
    holder.tell(`block ${hungAfter + 2 * TTL}`);
    await holder.hears('blocked');
    const since = performance.now();
    const successor = await takeOver('hung');
    expect(performance.now() - since).toBeLessThanOrEqual(hungAfter + TTL + 200);
    expect(holder.heard('woke')).toBeUndefined();
    expect((await holder.hears('woke')).isHeld).toBe(false);
    expect(successor).toBeGreaterThan(holder.fence);
  });

  it('or is stopped, though it renews in a thread, finds itself lost before it acts (rule 4)', async () => {
    await hold('stopped', { hungAfter: 30_000 });
    await holder.freeze();
    // It will find this before anything else when it wakes up.
    holder.tell('act');
    await takeOver('stopped');
    holder.thaw();
    await holder.hears('refrained');
    expect(holder.heard('acted')).toBeUndefined();
    expect(holder.heard('lost')).toMatchObject({ reason: 'expired' });
  });

  it('and whose thread dies renews by itself, and says so', async () => {
    const threadModule = pathToFileURL(join(support, 'dying-thread-store.mjs')).href;
    await hold('dying', { hungAfter: 30_000, threadModule });
    expect((await holder.hears('warned')).message).toContain('It ended with code 3.');
    const renewed = (): number => holder.said.filter(({ said }) => said === 'renewed').length;
    const before = renewed();
    await until(() => renewed() >= before + 6, { timeout: 3 * TTL });
    holder.tell('act');
    await holder.hears('acted');
    expect(holder.heard('lost')).toBeUndefined();
    expect(holder.errors).toBe('');
  });

  it('and whose thread cannot start renews by itself, and says so', async () => {
    const threadModule = pathToFileURL(join(support, 'there-is-no-such-module.mjs')).href;
    await hold('unborn', { hungAfter: 30_000, threadModule });
    await holder.hears('warned');
    await until(() => holder.said.filter(({ said }) => said === 'renewed').length >= 4);
    expect(holder.heard('lost')).toBeUndefined();
    expect(holder.errors).toBe('');
  });

  it('is kept alive by its thread no longer than by itself (rule 12)', async () => {
    await hold('ending', { hungAfter: 30_000 });
    holder.tell('close');
    await holder.hears('closed');
    holder.leave();
    await until(() => holder.hasExited);
    expect(holder.errors).toBe('');
  });

  it('ends by itself after it has released and closed (rule 12)', async () => {
    await hold('released', { hungAfter: 30_000 });
    holder.tell('release');
    await holder.hears('released');
    holder.leave();
    await until(() => holder.hasExited);
    expect(await takeOver('released')).toBeGreaterThan(holder.fence);
    expect(holder.errors).toBe('');
  });
});

describe('A process that renews in a thread', () => {
  let server: RedisServer;
  let lib: CompiledLib;
  let holder: BlockingHolder;

  beforeAll(async () => {
    [server, lib] = await Promise.all([startRedis(), compileLib()]);
  });
  afterEach(() => holder.kill());
  afterAll(async () => {
    await lib.remove();
    await server.stop();
  });

  it('is told of the loss before the store can free the key when Redis freezes (rule 4)', async () => {
    const ttl = 2_000;
    const hungAfter = 30_000;
    const store = redisPlan(server.url);
    holder = await BlockingHolder.start({ lib, store, key: 'frozen', ttl, hungAfter });
    await holder.hears('renewed');
    await server.pause();
    const since = performance.now();
    expect(await holder.hears('lost')).toMatchObject({ reason: 'expired' });
    expect(performance.now() - since).toBeLessThan(ttl);
    server.resume();
    holder.tell('act');
    await holder.hears('refrained');
  });
});
