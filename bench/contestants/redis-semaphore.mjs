import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';

/** Its default is a poll of 10 ms. */
export async function open({ port, ttl = 10_000 }) {
  const redis = new Redis(port, '127.0.0.1');
  return {
    async cycle(key) {
      const mutex = new Mutex(redis, key, { lockTimeout: ttl });
      await mutex.acquire();
      await mutex.release();
    },
    async turn(key, work) {
      const mutex = new Mutex(redis, key, { lockTimeout: ttl, acquireTimeout: 600_000 });
      await mutex.acquire();
      await work();
      await mutex.release();
    },
    async hold(key, ttl, onLost) {
      const mutex = new Mutex(redis, key, { lockTimeout: ttl, onLockLost: onLost });
      await mutex.acquire();
      return { release: () => mutex.release() };
    },
  };
}
