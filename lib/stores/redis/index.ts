export { type IoredisClient } from './redis-connection.js';
export { RedisLeaseStore, type RedisLeaseStoreOptions } from './redis-lease-store.js';
