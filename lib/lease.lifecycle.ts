import {
  Inject,
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { LeasedMethods } from './decorators/leased-methods.js';
import { ElectionService } from './election/election.service.js';
import {
  LEASE_LOST,
  LEFT_TO_TTL,
  LOOP_LAGS,
  MEMORY_STORE,
  RENEWAL_FAILED,
  STORE_NOT_CLOSED,
  STORE_NOT_OPEN,
} from './lease.messages.js';
import { RESOLVED_OPTIONS_TOKEN, type ResolvedModuleOptions } from './lease.module-definition.js';
import { LeaseEngine } from './lease/lease-engine.js';
import type { LeaseStore } from './stores/lease-store.js';

/** How many applications of this process use a store: it is closed by the last of them. */
const users = new WeakMap<LeaseStore, number>();

const ONE_DAY = 86_400_000;
const ONE_MINUTE = 60_000;

/** Life and death of the leases of an application (rule 11). */
@Injectable()
export class LeaseLifecycle
  implements
    OnModuleInit,
    OnApplicationBootstrap,
    OnModuleDestroy,
    BeforeApplicationShutdown,
    OnApplicationShutdown
{
  readonly #logger = new Logger('Lease');
  #usesStore = false;
  #graceEndsAt: number | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    private readonly engine: LeaseEngine,
    private readonly methods: LeasedMethods,
    private readonly elections: ElectionService,
    @Inject(RESOLVED_OPTIONS_TOKEN) private readonly options: ResolvedModuleOptions,
  ) {}

  onModuleInit(): void {
    const { store } = this.engine;
    const isFirst = this.#useStore(store);
    if (isFirst && !store.limits.shared) this.#logger.warn(MEMORY_STORE(store.name));
    this.engine.events.lost.subscribe(({ key, reason }) =>
      this.#logger.warn(LEASE_LOST(key, reason)),
    );
    this.engine.events.troubles.subscribe(({ key, failures, remainingMs, error }) => {
      // Once per trouble, not once per try.
      if (failures === 1) this.#logger.warn(RENEWAL_FAILED(key, remainingMs, error));
    });
    let laggedAt = -Infinity;
    this.engine.events.lags.subscribe(({ key, lateMs, remainingMs }) => {
      // Whoever blocks the event loop does it to all leases, and again.
      if (this.#now - laggedAt < ONE_MINUTE) return;
      laggedAt = this.#now;
      this.#logger.warn(LOOP_LAGS(key, lateMs, remainingMs));
    });
    this.engine.events.warnings.subscribe((message) => this.#logger.warn(message));
  }

  onApplicationBootstrap(): void {
    this.elections.start();
  }

  /** No new scheduled work from here on. */
  onModuleDestroy(): void {
    this.methods.close();
    this.#graceEndsAt ??= this.#now + this.options.shutdownGrace;
  }

  /** Work in flight may finish, its leases renewed; leaders hand over as soon as theirs has. */
  beforeApplicationShutdown(): Promise<void> {
    return this.#awake(async () => {
      const handedOver = this.elections.stop(this.#graceLeft);
      // Before the hooks that come next, in which others close what the work may need.
      if (!(await this.engine.idle(this.#graceLeft))) return await this.#close();
      await handedOver;
      // The server drains next, for as long as its requests take: one that waits for its signal, or for a lease,
      // is told when the grace is over.
      this.engine.agenda.after(this.#graceLeft, () => void this.#close());
    });
  }

  /** Requests are drained by now. What is left is stopped, then released. */
  onApplicationShutdown(): Promise<void> {
    return this.#awake(async () => {
      await this.#close();
      await this.#leaveStore();
    });
  }

  #close(): Promise<void> {
    this.#closing ??= this.#closeEngine();
    return this.#closing;
  }

  async #closeEngine(): Promise<void> {
    const left = await this.engine.close(this.#graceLeft, this.options.shutdownGrace);
    if (left.length > 0) this.#logger.warn(LEFT_TO_TTL(left));
  }

  /** Says whether this application is the first to. */
  #useStore(store: LeaseStore): boolean {
    const others = users.get(store) ?? 0;
    users.set(store, others + 1);
    this.#usesStore = true;
    // A store that is down does not keep the application from starting: its first claims say so.
    Promise.resolve()
      .then(() => store.open?.())
      .catch((error: unknown) => {
        if (this.#usesStore) this.#logger.warn(STORE_NOT_OPEN(store.name, error));
      });
    return others === 0;
  }

  /** Once, and not at all by an application that was closed before it began. */
  async #leaveStore(): Promise<void> {
    if (!this.#usesStore) return;
    this.#usesStore = false;
    const { store } = this.engine;
    const others = (users.get(store) ?? 1) - 1;
    users.set(store, others);
    if (others > 0) return;
    try {
      await store.close();
    } catch (error) {
      this.#logger.warn(STORE_NOT_CLOSED(store.name, error));
    }
  }

  /**
   * Our timers keep no process alive (rule 12). Here the application waits for us, and the hooks of others come
   * after ours: the process must not end in between because nothing else keeps it.
   */
  async #awake(work: () => Promise<void>): Promise<void> {
    const alive = setInterval(() => {}, ONE_DAY);
    try {
      await work();
    } finally {
      clearInterval(alive);
    }
  }

  get #now(): number {
    return this.engine.agenda.clock.now();
  }

  get #graceLeft(): number {
    return Math.max(0, (this.#graceEndsAt ?? 0) - this.#now);
  }
}
