import type { RedisOptions } from 'ioredis';

/** Where a connection goes, without its password (rule 15); nothing when only connecting tells, as behind Sentinel. */
export function addressOf({ path, host, port, sentinels }: RedisOptions): string | undefined {
  if (sentinels) return undefined;
  if (path) return path;
  return `${(host ?? 'localhost').toLowerCase()}:${port ?? 6379}`;
}
