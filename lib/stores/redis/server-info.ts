import { IS_CLUSTER_NODE, REDIS_TOO_OLD } from '../../lease.messages.js';

/** What a server says of itself. */
export interface ServerInfo {
  /** Another after every start; nothing where the user may not ask. */
  readonly runId: string | undefined;
}

const OLDEST = [6, 2] as const;

/** Reads INFO server; says what is wrong with a server that we cannot work with. */
export function readServerInfo(info: unknown, isInCluster: boolean): ServerInfo {
  assertNotTooOld(info);
  if (!isInCluster && fieldOf(info, 'redis_mode') === 'cluster') throw new Error(IS_CLUSTER_NODE());
  return { runId: fieldOf(info, 'run_id') };
}

/** By INFO server, in which Valkey and Redict name the Redis that they began as. Silence is no reason to refuse. */
export function assertNotTooOld(info: unknown): void {
  const version = fieldOf(info, 'redis_version') ?? '';
  const [major, minor] = /^(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? OLDEST;
  if (major! < OLDEST[0] || (major === OLDEST[0] && minor! < OLDEST[1])) {
    throw new Error(REDIS_TOO_OLD(version));
  }
}

function fieldOf(info: unknown, name: string): string | undefined {
  const text = typeof info === 'string' ? info : '';
  return new RegExp(`^${name}:([^\\r\\n]+)`, 'm').exec(text)?.[1];
}
