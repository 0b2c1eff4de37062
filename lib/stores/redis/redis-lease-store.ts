import type { RedisOptions } from 'ioredis';
import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseRecord,
  LeaseStore,
  OnTurn,
  Refusal,
  ReleaseHow,
  RenewOutcome,
  StoreInThread,
} from '../lease-store.js';
import { clusterOf, type RedisClusterOptions } from './cluster/cluster-connection.js';
import { ClusterLeases } from './cluster/cluster-leases.js';
import { OneServer } from './one-server.js';
import { connectionFor, subscriberFor, type IoredisClient } from './redis-connection.js';
import { connectionForThread } from './redis-in-thread.js';
import { rulesOf, type RedisLeaseStoreOptions } from './redis-rules.js';

/**
 * Leases in a Redis that you already have: one server, a primary behind Sentinel, or a cluster. The word of one primary
 * for each key: read "What happens when Redis is down" in the README before you trust it with more than efficiency.
 *
 * @example
 * ```ts
 * LeaseModule.forRoot({ store: new RedisLeaseStore(process.env.REDIS_URL) });
 * LeaseModule.forRoot({ store: new RedisLeaseStore({ host: 'redis', tls: {} }) });
 * LeaseModule.forRoot({ store: new RedisLeaseStore({ sentinels: [{ host: 'sentinel', port: 26379 }], name: 'mymaster' }) });
 * LeaseModule.forRoot({ store: new RedisLeaseStore({ cluster: [{ host: 'redis-1', port: 6379 }] }) });
 * LeaseModule.forRoot({ store: new RedisLeaseStore(yourIoredisClient) }); // connects beside it, never closes it
 * ```
 * @publicApi
 */
export class RedisLeaseStore implements LeaseStore {
  readonly name = 'Redis';
  readonly limits = { minTtl: 50, maxTtl: 86_400_000, permits: true, push: true, shared: true };

  readonly #leases: OneServer | ClusterLeases;
  readonly #inThread: () => StoreInThread;

  constructor(
    connection: string | RedisOptions | RedisClusterOptions | IoredisClient | undefined,
    options: RedisLeaseStoreOptions = {},
  ) {
    const cluster = clusterOf(connection);
    const rules = rulesOf(options, cluster !== undefined);
    this.#leases =
      cluster === undefined
        ? new OneServer(
            {
              connect: () => connectionFor(connection as RedisOptions),
              subscribe: () => subscriberFor(connection as RedisOptions),
            },
            rules,
          )
        : new ClusterLeases(cluster, rules);
    this.#inThread = () => ({
      module: import.meta.url,
      export: 'RedisLeaseStore',
      args: [connectionForThread(cluster?.given ?? connection!), options],
    });
  }

  open(): Promise<void> {
    return this.#leases.open();
  }

  /** Another connection to the same place; of a client that was passed in, as it was configured. */
  thread(): StoreInThread {
    return this.#inThread();
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    return this.#leases.acquire(claim);
  }

  enqueue(claim: Claim, onTurn: OnTurn): Promise<Grant | Refusal> {
    return this.#leases.enqueue(claim, onTurn);
  }

  handOver(hold: Hold, next: Claim, onTurn: OnTurn): Promise<HandOver> {
    return this.#leases.handOver(hold, next, onTurn);
  }

  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    return this.#leases.renew(holds);
  }

  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    return this.#leases.release(hold, how);
  }

  inspect(key: string): Promise<LeaseRecord | null> {
    return this.#leases.inspect(key);
  }

  async *list({ prefix = '' }: { readonly prefix?: string } = {}): AsyncIterable<LeaseRecord> {
    const seen = new Set<string>();
    for await (const key of this.#leases.keys(prefix)) {
      // SCAN may name a key twice.
      if (seen.has(key)) continue;
      seen.add(key);
      const record = await this.#leases.inspect(key);
      if (record !== null) yield record;
    }
  }

  /** Closes our own connections; a client that was passed in is the user's. {@link open} opens them again. */
  close(): Promise<void> {
    return this.#leases.close();
  }
}
