/** `nestjs-lease/redis`. */
export {
  type GuardedRedis,
  type GuardedWrite,
  RedisFenceGate,
  type RedisFenceGateOptions,
  type RedisValue,
} from './fencing/redis/redis-fence-gate.js';
export { type GuardableRedis } from './fencing/redis/guarded-script.js';
export * from './stores/redis/index.js';
