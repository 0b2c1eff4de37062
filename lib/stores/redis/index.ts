export {
  RedlockLeaseStore,
  type RedlockLeaseStoreOptions,
} from '../redlock/redlock-lease-store.js';
export { type IoredisClient } from './redis-connection.js';
export { RedisLeaseStore, type RedisLeaseStoreOptions } from './redis-lease-store.js';
