import type { ClusterOptions, NatMap, Redis, RedisOptions } from 'ioredis';
import { BAD_CLUSTER, SRV_CLUSTER } from '../../../lease.messages.js';
import { connectionFor, isClient, LIVELY, subscriberFor } from '../redis-connection.js';
import { redisKeys } from '../redis-keys.js';
import { slotOf, tagOf } from './slot.js';

/**
 * A Redis Cluster: some of its nodes, and the options of the connections to all of them.
 *
 * @publicApi
 */
export type RedisClusterOptions = Omit<RedisOptions, 'host' | 'port' | 'path' | 'db'> & {
  /** Where to ask for the others. One that answers is enough. */
  cluster: readonly { host: string; port?: number }[];
};

/** Where a cluster is, and how to connect to each of its nodes. */
export interface ClusterPlace {
  /** As `host:port`. */
  readonly seeds: readonly string[];
  /** A hash tag of the slot that a key has. */
  readonly tagOf: (key: string) => string;
  readonly slotOf: (key: string) => number;
  /** As it could have been given: for a thread. */
  readonly given: RedisClusterOptions;
  /** Where a node is for us that the cluster knows by this address. */
  readonly mapped: (address: string) => string;
  readonly connect: (address: string) => Redis;
  readonly subscribe: (address: string) => Redis;
}

/** Nothing when this is no cluster. */
export function clusterOf(to: unknown): ClusterPlace | undefined {
  if (typeof to !== 'object' || to === null) return undefined;
  if (isClient(to)) return 'isCluster' in to && to.isCluster === true ? ofClient(to) : undefined;
  return 'cluster' in to ? placeOf(to as RedisClusterOptions) : undefined;
}

function ofClient(client: object): ClusterPlace {
  const { startupNodes, options } = client as {
    startupNodes?: unknown;
    options: ClusterOptions;
  };
  const { keyPrefix, natMap, useSRVRecords } = options;
  const redisOptions: RedisOptions = options.redisOptions ?? {};
  if (useSRVRecords === true) throw new TypeError(SRV_CLUSTER());
  const nodes = Array.isArray(startupNodes) ? startupNodes.map(nodeOf) : [];
  const { host: _, port: __, ...more } = nodes[0] ?? {};
  const prefix = keyPrefix ?? redisOptions.keyPrefix;
  // Their settings are for what they do with it; where it is and who may come in are the same for us.
  const { retryStrategy: ___, ...lively } = LIVELY;
  return placeOf({
    ...more,
    ...redisOptions,
    ...lively,
    ...(prefix === undefined ? {} : { keyPrefix: prefix }),
    ...(natMap == null ? {} : { natMap }),
    cluster: nodes as { host: string }[],
  });
}

function placeOf(given: RedisClusterOptions): ClusterPlace {
  const { cluster, natMap, ...options } = given;
  const isList = Array.isArray(cluster) && cluster.length > 0;
  if (!isList || !cluster.every((node) => typeof node?.host === 'string' && node.host !== '')) {
    throw new TypeError(BAD_CLUSTER());
  }
  const at = (address: string): RedisOptions => ({
    ...(options as RedisOptions),
    ...splitAddress(address),
    db: 0,
    readOnly: false,
    // What is to come right behind ASKING must.
    enableAutoPipelining: false,
  });
  const inSlot = (key: string): number => slotOf((options.keyPrefix ?? '') + redisKeys(key).lease);
  return {
    seeds: cluster.map(({ host, port = 6379 }) => `${host}:${port}`),
    slotOf: inSlot,
    tagOf: (key) => tagOf(inSlot(key)),
    given,
    mapped: (address) => mapped(address, natMap),
    connect: (address) => connectionFor(at(address)),
    // Channels of a slot are keys to ioredis, and would be given the prefix.
    subscribe: (address) => subscriberFor({ ...at(address), keyPrefix: '' }),
  };
}

/** As ioredis takes them: a port, a URL, host:port, options. */
function nodeOf(node: unknown): Partial<RedisOptions> {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node };
  if (typeof node !== 'string') {
    const { host = '127.0.0.1', port = 6379, ...more } = (node ?? {}) as RedisOptions;
    return { host, port: Number(port), ...more };
  }
  if (!node.includes('//')) return splitAddress(node.includes(':') ? node : `127.0.0.1:${node}`);
  const { hostname, port, username, password, protocol } = new URL(node);
  return {
    host: hostname,
    port: Number(port || 6379),
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
}

export function splitAddress(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
}

function mapped(address: string, natMap: NatMap | undefined): string {
  const to = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
  return to ? `${to.host}:${to.port}` : address;
}
