import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { adminOf, REPLICATES_AT_ONCE } from './redis-sentinel.js';
import { startRedis, type RedisServer } from './redis-server.js';
import { slotOf, SLOTS } from '../../lib/stores/redis/cluster/slot.js';
import { until } from './until.js';

const NODE_TIMEOUT = 1_000;
/** Where no node is to be given up, however slow the machine is. */
export const NEVER = 60_000;

const asNode = (nodeTimeout: number): string[] => [
  '--cluster-enabled',
  'yes',
  '--cluster-node-timeout',
  `${nodeTimeout}`,
];

/**
 * Three primaries with a replica each.
 *
 * @param nodeTimeout - a node that is silent for so long is replaced: longer where none is to be
 */
export async function startRedisCluster(nodeTimeout = NODE_TIMEOUT): Promise<RedisCluster> {
  const args = [
    ...asNode(nodeTimeout),
    '--cluster-replica-validity-factor',
    '0',
    ...REPLICATES_AT_ONCE,
  ];
  const nodes = await Promise.all(
    Array.from({ length: 6 }, () => startRedis({ args, hasBusPort: true })),
  );
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  const create = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'];
  await promisify(execFile)(redisCli(), create);
  const cluster = new RedisCluster(nodes);
  await until(() => cluster.isWell(), { within: 20_000, what: 'all nodes of the cluster agree' });
  return cluster;
}

/**
 * So many primaries, each with its share of the slots and without a replica: there much sooner than the whole.
 *
 * @param securePorts - of as many nodes that listen there, too, with TLS
 */
export async function startPrimaries(
  count: number,
  args: readonly string[] = [],
  securePorts: readonly number[] = [],
): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, i) => {
      const secure = securePorts[i] === undefined ? [] : ['--tls-port', `${securePorts[i]}`];
      const all = [...asNode(NEVER), ...args, ...secure];
      return startRedis({ args: all, hasBusPort: true });
    }),
  );
  const cluster = new RedisCluster(nodes);
  const met = securePorts[0] ?? nodes[0]!.port;
  for (const [i, node] of nodes.entries()) {
    const share = [i, i + 1].map((part) => Math.floor((part * SLOTS) / count));
    await cluster.ask(node, 'CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    await cluster.ask(node, 'CLUSTER', 'ADDSLOTSRANGE', share[0]!, share[1]! - 1);
    await cluster.ask(node, 'CLUSTER', 'MEET', '127.0.0.1', met);
  }
  await until(() => cluster.isUp(), { within: 10_000, what: 'all slots are served' });
  return cluster;
}

/** Beside the server that was found, named after it as valkey-cli is, or on the path. */
function redisCli(): string {
  const server = process.env['REDIS_SERVER'] ?? '';
  const beside = join(dirname(server), basename(server).replace('server', 'cli'));
  return existsSync(beside) ? beside : 'redis-cli';
}

/** From, to, the primary, its replicas. */
type SlotRange = [number, number, ...[string, number][]];

export class RedisCluster {
  constructor(readonly nodes: readonly RedisServer[]) {}

  /** As a store, or the first argument of a cluster client, takes them. */
  get seeds(): { host: string; port: number }[] {
    return this.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** The primary that has a lease. */
  async ownerOf(lease: string): Promise<RedisServer> {
    const slot = slotOf(lease);
    for (const node of this.nodes) {
      const slots = await this.slotsAt(node).catch(() => []);
      const range = slots.find(([from, to]) => from <= slot && slot <= to);
      const owner = range && this.nodes.find(({ port }) => port === range[2]![1]);
      if (owner !== undefined) return owner;
    }
    throw new Error(`Nobody has ${lease}.`);
  }

  async replicaOf(primary: RedisServer): Promise<RedisServer> {
    const id = await this.idOf(primary);
    for (const node of this.nodes) {
      const line = (await this.linesAt(node).catch(() => [])).find((it) => it.includes('myself'));
      if (line?.includes(` ${id} `)) return node;
    }
    throw new Error('It has no replica.');
  }

  idOf(node: RedisServer): Promise<string> {
    return this.ask(node, 'CLUSTER', 'MYID') as Promise<string>;
  }

  async slotsAt(node: RedisServer): Promise<SlotRange[]> {
    return (await this.ask(node, 'CLUSTER', 'SLOTS')) as SlotRange[];
  }

  async linesAt(node: RedisServer): Promise<string[]> {
    return ((await this.ask(node, 'CLUSTER', 'NODES')) as string).trim().split('\n');
  }

  /** The replica of that primary takes its place, with its consent. */
  async failOver(primary: RedisServer): Promise<RedisServer> {
    const replica = await this.replicaOf(primary);
    await this.ask(replica, 'CLUSTER', 'FAILOVER');
    await until(async () => (await this.linesAt(replica)).some((it) => /myself,master/.test(it)));
    return replica;
  }

  /** Of a slot: from now on it is on its way from one primary to another. */
  async beginMove(slot: number, source: RedisServer, target: RedisServer): Promise<void> {
    const [from, to] = await Promise.all([this.idOf(source), this.idOf(target)]);
    await this.ask(target, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', from);
    await this.ask(source, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', to);
  }

  /** All that is in a slot that is on its way. */
  async moveKeys(slot: number, source: RedisServer, target: RedisServer): Promise<void> {
    const names = (await this.ask(source, 'CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
    const where = ['127.0.0.1', target.port, '', 0, 5_000] as const;
    if (names.length > 0) await this.ask(source, 'MIGRATE', ...where, 'KEYS', ...names);
  }

  async endMove(slot: number, source: RedisServer, target: RedisServer): Promise<void> {
    const to = await this.idOf(target);
    for (const node of [target, source])
      await this.ask(node, 'CLUSTER', 'SETSLOT', slot, 'NODE', to);
  }

  /** Every node says that all slots are served. */
  async isUp(): Promise<boolean> {
    const infos = await Promise.all(
      this.nodes.map((node) => this.ask(node, 'CLUSTER', 'INFO').catch(() => '')),
    );
    return infos.every(
      (info) =>
        String(info).includes('cluster_state:ok') &&
        String(info).includes(`cluster_known_nodes:${this.nodes.length}`),
    );
  }

  /** Every node says that all is well and that there are three primaries with a replica each. */
  async isWell(): Promise<boolean> {
    for (const node of this.nodes) {
      const info = (await this.ask(node, 'CLUSTER', 'INFO').catch(() => '')) as string;
      const slots = await this.slotsAt(node).catch(() => []);
      if (!info.includes('cluster_state:ok') || !slots.every((range) => range.length === 4)) {
        return false;
      }
      const lines = await this.linesAt(node);
      if (lines.some((line) => /fail|handshake|disconnected/.test(line))) return false;
      const self = lines.find((line) => line.includes('myself'))!;
      const replication = (await this.ask(node, 'INFO', 'replication')) as string;
      if (self.includes('slave') && !replication.includes('master_link_status:up')) return false;
    }
    return true;
  }

  async ask(node: RedisServer, command: string, ...args: (string | number)[]): Promise<unknown> {
    const admin = adminOf(node);
    try {
      return await admin.call(command, ...args);
    } finally {
      admin.disconnect();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}
