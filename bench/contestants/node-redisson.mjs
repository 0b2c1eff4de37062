import { Redisson } from 'node-redisson';

/** Woken by pub/sub. Brings no ioredis and names no version: it gets the newest, as its README has it installed. */
export async function open({ port, ttl = 10_000 }) {
  const redisson = new Redisson({
    redis: { options: { host: '127.0.0.1', port } },
    lockWatchdogTimeout: BigInt(ttl),
  });
  return {
    async cycle(key) {
      const lock = redisson.getLock(key);
      await lock.lock();
      await lock.unlock();
    },
    async turn(key, work) {
      const lock = redisson.getLock(key);
      await lock.lock();
      await work();
      await lock.unlock();
    },
  };
}
