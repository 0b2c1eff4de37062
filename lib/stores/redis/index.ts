export {
  RedlockLeaseStore,
  type RedlockLeaseStoreOptions,
} from '../redlock/redlock-lease-store.js';

export { type RedisClusterOptions } from './cluster/cluster-connection.js';
export { type IoredisClient } from './redis-connection.js';
export { RedisLeaseStore } from './redis-lease-store.js';
export { type RedisLeaseStoreOptions } from './redis-rules.js';
