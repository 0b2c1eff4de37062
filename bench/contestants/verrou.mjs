import { Redis } from 'ioredis5';
import { Verrou } from '@verrou/core';
import { redisStore } from '@verrou/core/drivers/redis';

/** Waits without end by default, every 250 ms. */
export async function open({ port, ttl = 10_000, poll }) {
  const driver = redisStore({ connection: new Redis(port, '127.0.0.1') });
  const verrou = new Verrou({ default: 'redis', stores: { redis: { driver } } });
  const waiting = poll === undefined ? {} : { retry: { delay: poll } };
  return {
    async cycle(key) {
      const lock = verrou.createLock(key, ttl);
      if (!(await lock.acquire())) throw new Error('held');
      await lock.release();
    },
    async turn(key, work) {
      const lock = verrou.createLock(key, ttl);
      if (!(await lock.acquire(waiting))) throw new Error('held');
      await work();
      await lock.release();
    },
  };
}
