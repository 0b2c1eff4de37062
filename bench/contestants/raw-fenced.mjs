import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { COMPARE_AND_DELETE, FENCED_ACQUIRE, load } from './raw-scripts.mjs';

/** The least that has a fence. */
export async function open({ port, ttl = 10_000 }) {
  const redis = new Redis(port, '127.0.0.1');
  const acquire = await load(redis, FENCED_ACQUIRE);
  const release = await load(redis, COMPARE_AND_DELETE);
  return {
    async cycle(key) {
      const token = randomUUID();
      if ((await acquire([key, `${key}:fence`], token, ttl)) <= 0) throw new Error('held');
      await release([key], token);
    },
  };
}
