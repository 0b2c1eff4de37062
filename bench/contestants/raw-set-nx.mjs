import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { COMPARE_AND_DELETE, load } from './raw-scripts.mjs';

/** The least that is safe: no fence, no renewal, nobody told of anything. */
export async function open({ port, ttl = 10_000 }) {
  const redis = new Redis(port, '127.0.0.1');
  const release = await load(redis, COMPARE_AND_DELETE);
  return {
    async cycle(key) {
      const token = randomUUID();
      if ((await redis.set(key, token, 'PX', ttl, 'NX')) !== 'OK') throw new Error('held');
      await release([key], token);
    },
  };
}
