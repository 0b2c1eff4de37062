import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { sleep } from '../harness/clock.mjs';
import { COMPARE_AND_DELETE, load } from './raw-scripts.mjs';

/** Waiting as most write it: every waiter asks again after a while. */
export async function open({ port, ttl = 10_000, poll }) {
  const redis = new Redis(port, '127.0.0.1');
  const release = await load(redis, COMPARE_AND_DELETE);
  return {
    async turn(key, work) {
      const token = randomUUID();
      while ((await redis.set(key, token, 'PX', ttl, 'NX')) !== 'OK') await sleep(poll);
      await work();
      await release([key], token);
    },
  };
}
