import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { importLibrary } from '../harness/library.mjs';
import { load } from './raw-scripts.mjs';

const { scripts } = await importLibrary('stores/redis/scripts.js');

/** What a lease asks of Redis, and nothing around it: the library's own scripts, called by hand. */
export async function open({ port, ttl = 10_000 }) {
  const redis = new Redis(port, '127.0.0.1');
  const acquire = await load(redis, scripts.acquire.source);
  const release = await load(redis, scripts.release.source);
  const wireTtl = String(ttl).padStart(12, '0');
  return {
    async cycle(key) {
      const token = randomUUID();
      const lease = `bench:{${key}}`;
      const deadline = `${Date.now() + ttl}000`;
      const fence = await acquire([lease], deadline, wireTtl, `${token} bench:1`);
      if (typeof fence !== 'string') throw new Error('held');
      await release([lease, `${lease}:line`], `${token} `);
    },
  };
}
