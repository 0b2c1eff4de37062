/** `nestjs-lease/postgres`. */
export {
  type GuardedPostgres,
  PostgresFenceGate,
  type PostgresFenceGateOptions,
  postgresFenceSql,
} from './fencing/sql/postgres-fence-gate.js';
export { type SqlTransaction } from './fencing/sql/transaction-handle.js';
export * from './stores/postgres/index.js';
