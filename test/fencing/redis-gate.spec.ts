import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { StaleFenceException } from 'nestjs-lease';
import { RedisFenceGate } from 'nestjs-lease/redis';
import { KEY_IS_MARK } from '../../lib/lease.messages.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { aFence, aResource, describeFenceGate } from './gate-suite.js';

let server: RedisServer;
let redis: Redis;
let gate: RedisFenceGate;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  gate = new RedisFenceGate(redis);
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

describeFenceGate('Redis', () => ({ gate, another: () => new RedisFenceGate(redis) }));

describe('a guarded write', () => {
  it('set() writes under a fence that is admitted, and nothing under one that is stale', async () => {
    const key = aResource('key');
    const fence = aFence();
    await gate.set(key, 'new', { fence });
    await expect(gate.set(key, 'stale', { fence: fence - 1 })).rejects.toMatchObject({
      resource: key,
      highest: fence,
    });
    expect(await redis.get(key)).toBe('new');
    await gate.set(key, Buffer.from([0, 255]), { fence, ttl: '1h' });
    expect(await redis.getBuffer(key)).toEqual(Buffer.from([0, 255]));
    expect(await redis.pttl(key)).toBeGreaterThan(3_000_000);
  });

  it('hset() writes all fields or none', async () => {
    const key = aResource('hash');
    const fence = aFence();
    expect(await gate.hset(key, { a: 1, b: 'two' }, { fence })).toBe(2);
    await expect(gate.hset(key, { a: 9 }, { fence: fence - 1 })).rejects.toBeInstanceOf(
      StaleFenceException,
    );
    expect(await redis.hgetall(key)).toEqual({ a: '1', b: 'two' });
    const many = Object.fromEntries(Array.from({ length: 9_001 }, (_, i) => [`f${i}`, i]));
    expect(await gate.hset(key, many, { fence })).toBe(9_001);
    await expect(gate.hset(key, {}, { fence })).rejects.toThrow('no fields');
  });

  it('del() deletes one key or several', async () => {
    const [a, b] = [aResource('a'), aResource('b')];
    const fence = aFence();
    await redis.mset(a, '1', b, '1');
    await gate.admit('both', fence);
    await expect(gate.del([a, b], { resource: 'both', fence: fence - 1 })).rejects.toMatchObject({
      resource: 'both',
    });
    expect(await redis.exists(a, b)).toBe(2);
    expect(await gate.del([a, b, aResource()], { resource: 'both', fence })).toBe(2);
  });

  it('run() runs a script of the user with its own KEYS and ARGV', async () => {
    const key = aResource('stock');
    const fence = aFence();
    const script = `
      local left = redis.call('INCRBY', KEYS[1], ARGV[1])
      if left < 0 then return redis.error_reply('SOLD out') end
      return { left, #KEYS, #ARGV, ARGV[2] }`;
    const write = { resource: 'stock', keys: [key], args: [5, 'x'] };
    expect(await gate.run(script, { ...write, fence })).toEqual([5, 1, 2, 'x']);
    await expect(gate.run(script, { ...write, fence: fence - 1 })).rejects.toMatchObject({
      highest: fence,
    });
    expect(await redis.get(key)).toBe('5');
    await expect(gate.run(script, { ...write, args: [-9, 'x'], fence })).rejects.toThrow(
      'SOLD out',
    );
    await expect(
      gate.run('return redis.call("NOPE")', { resource: 'stock', fence }),
    ).rejects.toThrow();
    expect(await gate.run('return nil', { resource: 'stock', fence })).toBeNull();
    expect(await gate.run('return', { resource: 'stock', fence })).toBeNull();
  });

  it('goes on after the server has forgotten all scripts', async () => {
    const key = aResource('key');
    await redis.script('FLUSH');
    await gate.set(key, '1', { fence: aFence() });
    expect(await redis.get(key)).toBe('1');
  });

  it('leaves marks that end by themselves, after the retention', async () => {
    const key = aResource('key');
    await new RedisFenceGate(redis, { retention: '2d', prefix: 'marks' }).set(key, '1', {
      fence: aFence(),
    });
    const left = await redis.pttl(`marks:{${key}}`);
    expect(left).toBeGreaterThan(86_400_000);
    expect(left).toBeLessThanOrEqual(2 * 86_400_000 + 1_000);
    await new RedisFenceGate(redis, { retention: Infinity, prefix: 'marks' }).set(key, '1', {
      fence: aFence(),
    });
    expect(await redis.pttl(`marks:{${key}}`)).toBe(-1);
  });

  it('keeps the mark of a fence that is ahead of the clock for longer', async () => {
    const key = aResource('key');
    const ahead = aFence() + 10 * 86_400_000_000;
    await new RedisFenceGate(redis, { retention: '2d', prefix: 'marks' }).set(key, '1', {
      fence: ahead,
    });
    expect(await redis.pttl(`marks:{${key}}`)).toBeGreaterThan(11 * 86_400_000);
  });

  it('says when the mark is somebody else’s value', async () => {
    const key = aResource('key');
    await redis.set(`fence:{${key}}`, 'hello');
    await expect(gate.set(key, '1', { fence: aFence() })).rejects.toThrow(
      'is no mark of nestjs-lease',
    );
  });

  it('works through a client with a prefix, with numbers as texts, and with auto-pipelining', async () => {
    const client = new Redis(server.url, {
      keyPrefix: 'app:',
      stringNumbers: true,
      enableAutoPipelining: true,
    });
    const prefixed = new RedisFenceGate(client);
    const key = aResource('key');
    const fence = aFence();
    await Promise.all([
      prefixed.set(key, '1', { fence }),
      prefixed.hset(`${key} hash`, { a: 1 }, { fence }),
    ]);
    await expect(prefixed.set(key, '2', { fence: fence - 1 })).rejects.toMatchObject({
      highest: fence,
    });
    expect(await redis.get(`app:${key}`)).toBe('1');
    expect(await redis.exists(`app:fence:{app:${key}}`)).toBe(1);
    client.disconnect();
  });
});

it('a key that is made of somebody’s input is never a way to a mark', async () => {
  const resource = aResource();
  const fence = aFence();
  await gate.admit(resource, fence);
  const mark = `fence:{${resource}}`;
  const script = `return redis.call('DEL', KEYS[1])`;
  for (const attack of [
    () => gate.set(mark, '1', { fence }),
    () => gate.hset(mark, { a: 1 }, { fence }),
    () => gate.del(mark, { fence }),
    () => gate.del(['a', mark], { resource: 'b', fence }),
    () => gate.run(script, { resource, keys: [mark], fence }),
    () => gate.under(fence).set(mark, '1'),
  ]) {
    await expect(attack()).rejects.toThrow(KEY_IS_MARK(mark));
  }
  await expect(gate.admit(resource, fence - 1)).rejects.toMatchObject({ highest: fence });
  // A key of the same beginning that is no mark.
  await gate.set(`fence:${resource}`, '1', { fence });
});

it('names what it cannot be made of', () => {
  expect(() => new RedisFenceGate({} as never)).toThrow('needs a client of ioredis');
  expect(() => new RedisFenceGate(redis, { prefix: 'a{b}' })).toThrow('"prefix"');
  expect(() => new RedisFenceGate(redis, { prefx: 'a' } as never)).toThrow(
    'There is no option "prefx"',
  );
});
