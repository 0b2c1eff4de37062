import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { FENCED_ACQUIRE, load, RELEASE_AND_TELL } from './raw-scripts.mjs';

const NET = 200;

/**
 * The floor of waiting: FIFO in the process, one contender per key and process, woken by the push of a release,
 * with a slow poll as the net. One connection for commands, one for all subscriptions.
 */
export async function open({ port, ttl = 10_000 }) {
  const redis = new Redis(port, '127.0.0.1');
  const subscriber = new Redis(port, '127.0.0.1');
  const acquire = await load(redis, FENCED_ACQUIRE);
  const release = await load(redis, RELEASE_AND_TELL);
  const queues = new Map();
  subscriber.on('message', (channel) => queues.get(channel)?.wake());

  return {
    async turn(key, work) {
      const token = randomUUID();
      const channel = `${key}:freed`;
      let queue = queues.get(channel);
      if (queue === undefined) queues.set(channel, (queue = new Queue()));
      const tryOnce = async () => (await acquire([key, `${key}:fence`], token, ttl)) > 0;
      const subscribe = () => subscriber.subscribe(channel);

      await queue.enter();
      try {
        await queue.contend(tryOnce, subscribe);
        await work();
        await release([key], token, channel);
      } finally {
        // Nothing is cleaned up: the least that a waiter can cost.
        queue.leave();
      }
    },
  };
}

/** Those of this process that want one key. */
class Queue {
  #isSubscribed = false;
  #isTaken = false;
  #waiting = [];
  #wake = () => {};
  #wakeUps = 0;

  enter() {
    if (this.#isTaken) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#isTaken = true;
    return undefined;
  }

  leave() {
    const next = this.#waiting.shift();
    next?.();
    this.#isTaken = next !== undefined;
  }

  wake() {
    this.#wakeUps++;
    this.#wake();
  }

  /** A push between asking and waiting is not missed: it changes the count. */
  async contend(tryOnce, subscribe) {
    for (;;) {
      const seen = this.#wakeUps;
      if (await tryOnce()) return;
      if (!this.#isSubscribed) {
        this.#isSubscribed = true;
        await subscribe();
        continue;
      }
      if (seen === this.#wakeUps) await this.#push();
    }
  }

  #push() {
    return new Promise((resolve) => {
      const net = setTimeout(resolve, NET);
      this.#wake = () => {
        clearTimeout(net);
        resolve();
      };
    });
  }
}
