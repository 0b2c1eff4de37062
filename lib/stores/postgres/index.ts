export { type Queryable } from './assert-held.js';
export { postgresLeaseSql } from './migration.js';
export {
  PostgresAdvisoryLeaseStore,
  type PostgresAdvisoryLeaseStoreOptions,
} from './postgres-advisory-lease-store.js';
export { PostgresLeaseStore, type PostgresLeaseStoreOptions } from './postgres-lease-store.js';
