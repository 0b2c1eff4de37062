/** For redlock and the fork that has the same calls. Their retries are unlimited here: a waiter waits. */
export function redlockLike(redlock, { ttl = 10_000, poll }) {
  const waiting = {
    retryCount: -1,
    ...(poll === undefined ? {} : { retryDelay: poll, retryJitter: 0 }),
  };
  return {
    async cycle(key) {
      const lock = await redlock.acquire([key], ttl);
      await lock.release();
    },
    async turn(key, work) {
      const lock = await redlock.acquire([key], ttl, waiting);
      await work();
      await lock.release();
    },
    hold(key, ttl, onLost) {
      return new Promise((held, failed) => {
        let stop;
        const stopped = new Promise((resolve) => (stop = resolve));
        const over = redlock.using([key], ttl, async (signal) => {
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
