import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedis, type RedisServer } from './redis-server.js';
import { until } from './until.js';

export const PRIMARY_NAME = 'leases';

/** Without the wait in which a primary gathers replicas to send its data to. */
export const REPLICATES_AT_ONCE = [
  '--repl-diskless-sync-delay',
  '0',
  '--repl-ping-replica-period',
  '1',
];

/** A replica of that server, in step with it. */
export async function startReplica(
  primary: RedisServer,
  args: readonly string[] = [],
): Promise<RedisServer> {
  const replicaOf = ['--replicaof', `127.0.0.1 ${primary.port}`];
  const replica = await startRedis({ args: [...REPLICATES_AT_ONCE, ...replicaOf, ...args] });
  // The primary sends it what is written only after it has heard from it.
  const isOnline = new RegExp(`port=${replica.port},state=online,offset=[1-9]`);
  await until(async () => isOnline.test(await infoOf(primary)), { within: 15_000 });
  return replica;
}

/** What a server says of its replication. */
export async function infoOf(server: RedisServer): Promise<string> {
  const admin = adminOf(server);
  try {
    return (await admin.info('replication')) as string;
  } catch {
    return '';
  } finally {
    admin.disconnect();
  }
}

/** A connection for one question, which fails at once when nobody answers. */
export function adminOf({ port }: { readonly port: number }): Redis {
  const admin = new Redis({
    port,
    retryStrategy: () => null,
    connectTimeout: 500,
    commandTimeout: 2_000,
  });
  admin.on('error', () => undefined);
  return admin;
}

/** A primary, two replicas, and three sentinels that watch over them. */
export async function startSentinel(): Promise<RedisSentinel> {
  const primary = await startRedis({ args: REPLICATES_AT_ONCE });
  const replicas = await Promise.all([startReplica(primary), startReplica(primary)]);
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-lease-sentinel-'));
  const config = (name: string): string => {
    const file = join(folder, name);
    writeFileSync(
      file,
      `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${primary.port} 2
sentinel down-after-milliseconds ${PRIMARY_NAME} 500
sentinel failover-timeout ${PRIMARY_NAME} 3000
`,
    );
    return file;
  };
  const sentinels = await Promise.all(
    ['1', '2', '3'].map((name) => startRedis({ config: config(name), args: ['--sentinel'] })),
  );
  const sentinel = new RedisSentinel(sentinels, [primary, ...replicas], folder);
  await until(() => sentinel.isSettled(), {
    within: 20_000,
    what: 'the sentinels know each other',
  });
  return sentinel;
}

export class RedisSentinel {
  constructor(
    readonly servers: readonly RedisServer[],
    readonly redises: readonly RedisServer[],
    private readonly folder: string,
  ) {}

  /** Options of a store, or of a client. */
  get options(): { sentinels: { host: string; port: number }[]; name: string } {
    const sentinels = this.servers.map(({ port }) => ({ host: '127.0.0.1', port }));
    return { sentinels, name: PRIMARY_NAME };
  }

  /** The primary that all sentinels name. */
  async primary(): Promise<RedisServer> {
    return until(async () => {
      const named = await Promise.all(
        this.servers.map(async (sentinel) => {
          const [, port] = await this.#ask<string[]>(sentinel, 'get-master-addr-by-name');
          return Number(port);
        }),
      );
      const [port] = named;
      if (!named.every((other) => other === port)) return undefined;
      return this.redises.find((one) => one.port === port);
    });
  }

  /** Asks for a failover and waits until it is done. */
  async failOver(): Promise<void> {
    const before = await this.primary();
    await until(
      () =>
        this.#ask(this.servers[0]!, 'failover').then(
          () => true,
          () => false,
        ),
      { within: 10_000, what: 'a failover is begun' },
    );
    await until(async () => (await this.primary()) !== before, { within: 15_000 });
  }

  /** All of them know of both replicas and of each other, and all replicas are in step. */
  async isSettled(): Promise<boolean> {
    const views = await Promise.all(
      this.servers.map(async (sentinel) => {
        const fields = await this.#ask<string[]>(sentinel, 'master').catch(() => [] as string[]);
        const field = (name: string): string | undefined => fields[fields.indexOf(name) + 1];
        const isCalm = field('flags') === 'master';
        return isCalm && field('num-slaves') === '2' && field('num-other-sentinels') === '2';
      }),
    );
    if (!views.every(Boolean)) return false;
    const primary = await this.primary();
    const info = await infoOf(primary);
    return [...info.matchAll(/^slave\d+:.*state=online/gm)].length === 2;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.servers, ...this.redises].map((server) => server.stop()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #ask<T>(sentinel: RedisServer, command: string): Promise<T> {
    const admin = adminOf(sentinel);
    try {
      return (await admin.call('SENTINEL', command, PRIMARY_NAME)) as T;
    } finally {
      admin.disconnect();
    }
  }
}
