import { Redis, type RedisOptions } from 'ioredis';
import { NOT_FOR_THREAD } from '../../lease.messages.js';
import type { RedisClusterOptions } from './cluster/cluster-connection.js';
import { isClient, settingsBeside, type IoredisClient } from './redis-connection.js';

/**
 * What a thread is given to connect to the same place. What is no data cannot be sent there: left out where our own
 * settings count anyway, refused by its name where they do not.
 */
export function connectionForThread(
  to: string | RedisOptions | RedisClusterOptions | IoredisClient,
): string | RedisOptions {
  if (typeof to === 'string') return to;
  const options: RedisOptions = isClient(to) ? settingsBeside(to) : (to as RedisOptions);
  const defaults = isClient(to) ? new Redis({ lazyConnect: true }).options : {};
  const data: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || isIrrelevant(name, value, options, defaults)) continue;
    try {
      data[name] = structuredClone(value);
    } catch {
      throw new TypeError(NOT_FOR_THREAD(name));
    }
  }
  return data as RedisOptions;
}

/** Of a client: what it has by default, and what only matters with Sentinel when there is none. */
function isIrrelevant(
  name: string,
  value: unknown,
  { sentinels }: RedisOptions,
  defaults: RedisOptions,
): boolean {
  if (typeof value !== 'function') return false;
  if (name.startsWith('sentinel') && !sentinels) return true;
  // By its text: a client may come from another copy of ioredis.
  return String(defaults[name as keyof RedisOptions]) === String(value);
}
