import { importLibrary } from '../harness/library.mjs';

/** Servers that have just been started would stay out for a while. */
const REDLOCK = { quarantine: false };

/**
 * The stores that are measured beside each other. One more is one more entry: how it is made, of what the benchmark
 * started (`port` of a Redis, `nodes` of more, `postgres` and `etcd`).
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
  'redlock, 3 nodes': async ({ nodes }) => {
    const { RedlockLeaseStore } = await importLibrary('stores/redis/index.js');
    return new RedlockLeaseStore(
      nodes.map((port) => ({ host: '127.0.0.1', port })),
      REDLOCK,
    );
  },
  postgres: async ({ postgres }) => {
    const { PostgresLeaseStore } = await importLibrary('stores/postgres/index.js');
    return new PostgresLeaseStore(postgres);
  },
  'postgres, advisory': async ({ postgres }) => {
    const { PostgresAdvisoryLeaseStore } = await importLibrary('stores/postgres/index.js');
    return new PostgresAdvisoryLeaseStore(postgres);
  },
  etcd: async ({ etcd }) => {
    const { EtcdLeaseStore } = await importLibrary('stores/etcd/index.js');
    return new EtcdLeaseStore({ endpoints: [etcd] });
  },
};

export const storeNamed = (name, options) => stores[name](options);
