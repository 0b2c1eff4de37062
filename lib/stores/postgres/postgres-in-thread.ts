import type { Pool, PoolConfig } from 'pg';
import { POSTGRES_NOT_FOR_THREAD } from '../../lease.messages.js';
import { isPool } from './postgres-connection.js';

/** What a thread is given to connect to the same place: data, or nothing. */
export function connectionForThread(to: string | PoolConfig | Pool): string | PoolConfig {
  if (typeof to === 'string') return to;
  const { password, ...options } = isPool(to) ? (to as Pool & { options: PoolConfig }).options : to;
  // A pool keeps its password where copying does not see it.
  const secret = isPool(to) ? (to as Pool & { options: PoolConfig }).options.password : password;
  const data: Record<string, unknown> = {};
  for (const [name, value] of Object.entries({ ...options, password: secret })) {
    // What pg-pool adds of its own accord.
    if (value === undefined || (isPool(to) && ['log', 'Client', 'Promise'].includes(name)))
      continue;
    try {
      data[name] = structuredClone(value);
    } catch {
      throw new TypeError(POSTGRES_NOT_FOR_THREAD(name));
    }
  }
  return data as PoolConfig;
}
