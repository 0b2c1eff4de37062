import { ETCD_CLOSED } from '../../lease.messages.js';
import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
  RenewOutcome,
  StoreInThread,
} from '../lease-store.js';
import { EtcdClaim, type EtcdParts } from './etcd-claim.js';
import { EtcdClient } from './etcd-client.js';
import { EtcdLeases } from './etcd-leases.js';
import { inspectEtcd, listEtcd } from './etcd-looking.js';
import { EtcdNames } from './etcd-names.js';
import { settingsOf, type EtcdLeaseStoreOptions } from './etcd-options.js';
import { releaseEtcd } from './etcd-release.js';
import { renewEtcd } from './etcd-renewal.js';
import { transact, get } from './etcd-txn.js';
import { EtcdWatch } from './etcd-watch.js';

/** How long anything but a claim, which says it itself, is waited for: as long as the engine does. */
const within = (ttl: number): number => performance.now() + Math.min(Math.max(ttl / 3, 500), 5_000);
const LOOK_WITHIN = 5_000;
const OPEN_WITHIN = 2_000;
const CLOSE_WITHIN = 500;

/**
 * Leases in an etcd cluster: a quorum's word, which survives the loss of a minority of its members. Speaks to the
 * JSON gateway that etcd has built in (3.4 or newer), so that no other package is needed.
 *
 * @example
 * ```ts
 * LeaseModule.forRoot({ store: new EtcdLeaseStore({ endpoints: ['http://etcd-1:2379', 'http://etcd-2:2379'] }) });
 * LeaseModule.forRoot({
 *   store: new EtcdLeaseStore({
 *     endpoints: 'https://etcd:2379',
 *     tls: { ca: readFileSync('ca.pem') },
 *     username: 'leases',
 *     password: process.env.ETCD_PASSWORD,
 *   }),
 * });
 * ```
 * @publicApi
 */
export class EtcdLeaseStore implements LeaseStore {
  readonly name = 'etcd';
  // Whole seconds are what it counts in.
  readonly limits = { minTtl: 1_000, maxTtl: 86_400_000, permits: true, push: true, shared: true };

  readonly #parts: EtcdParts;
  readonly #watch: EtcdWatch;
  readonly #inThread: () => StoreInThread;

  constructor(options: EtcdLeaseStoreOptions) {
    const settings = settingsOf(options);
    const client = new EtcdClient(settings);
    const names = new EtcdNames(settings.prefix);
    this.#parts = { client, names, leases: new EtcdLeases(client) };
    this.#watch = new EtcdWatch(client, names);
    client.onTrouble = (endpoint) => this.#watch.doubt(endpoint);
    this.#inThread = () => ({
      module: import.meta.url,
      export: 'EtcdLeaseStore',
      args: [structuredClone(options)],
    });
  }

  /** Asks a quorum for nothing in particular: whether it is there, and lets us in. */
  async open(): Promise<void> {
    const { client, names } = this.#parts;
    client.open();
    const nothing = get({ key: names.mark('', '') });
    await transact(client, { success: [nothing] }, performance.now() + OPEN_WITHIN);
  }

  thread(): StoreInThread {
    return this.#inThread();
  }

  async acquire(claim: Claim): Promise<Grant | Refusal> {
    this.#assertOpen();
    return new EtcdClaim(this.#parts, claim).answer();
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    if (holds.length === 0) return [];
    this.#assertOpen();
    const until = within(Math.min(...holds.map(({ ttl }) => ttl)));
    return renewEtcd(this.#parts, holds, until);
  }

  async release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    this.#assertOpen();
    return releaseEtcd(this.#parts, hold, how, within(hold.ttl));
  }

  async watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    this.#assertOpen();
    return this.#watch.watch(key, onFree);
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    this.#assertOpen();
    return inspectEtcd(this.#parts, key, performance.now() + LOOK_WITHIN);
  }

  async *list({ prefix = '' }: { readonly prefix?: string } = {}): AsyncIterable<LeaseRecord> {
    this.#assertOpen();
    yield* listEtcd(this.#parts, prefix, LOOK_WITHIN);
  }

  /** After what was to be given back is, or half a second. {@link open} opens it again. */
  async close(): Promise<void> {
    const { client, leases } = this.#parts;
    if (!client.isOpen) return;
    this.#watch.close();
    await leases.close(CLOSE_WITHIN);
    client.close();
  }

  #assertOpen(): void {
    if (!this.#parts.client.isOpen) throw new Error(ETCD_CLOSED());
  }
}
