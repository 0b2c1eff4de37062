import { importLibrary } from '../harness/library.mjs';

/**
 * The stores that are measured beside each other. One more is one more entry: how it is made, and what it needs to
 * run (`port` is that of the Redis that the benchmark started).
 */
export const stores = {
  redis: async ({ port, client }) => {
    const { RedisLeaseStore } = await importLibrary('stores/redis/index.js');
    return new RedisLeaseStore({ host: '127.0.0.1', port, ...client });
  },
  memory: async () => {
    const { MemoryLeaseStore } = await importLibrary('index.js');
    return new MemoryLeaseStore();
  },
};

export const storeNamed = (name, options) => stores[name](options);
