import { Redis } from 'ioredis';
import { createLock, IoredisAdapter } from 'redlock-universal';

/** Its retries are unlimited here: a waiter waits. Their delay is its default of 100 ms unless a poll is given. */
export async function open({ port, ttl = 10_000, poll }) {
  const adapter = new IoredisAdapter(new Redis(port, '127.0.0.1'));
  const waiting = {
    retryAttempts: Number.MAX_SAFE_INTEGER,
    ...(poll === undefined ? {} : { retryDelay: poll }),
  };
  return {
    async cycle(key) {
      const lock = createLock({ adapter, key, ttl });
      await lock.release(await lock.acquire());
    },
    async turn(key, work) {
      const lock = createLock({ adapter, key, ttl, ...waiting });
      const handle = await lock.acquire();
      await work();
      await lock.release(handle);
    },
    hold(key, ttl, onLost) {
      return new Promise((held, failed) => {
        let stop;
        const stopped = new Promise((resolve) => (stop = resolve));
        const lock = createLock({ adapter, key, ttl });
        const over = lock.using(async (signal) => {
          signal.addEventListener('abort', onLost);
          held({
            release() {
              stop();
              return over;
            },
          });
          await stopped;
        });
        over.catch(failed);
      });
    },
  };
}
