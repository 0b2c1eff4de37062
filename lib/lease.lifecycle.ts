import {
  Inject,
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { LeasedMethods } from './decorators/leased-methods.js';
import { ElectionService } from './election/election.service.js';
import {
  LEASE_LOST,
  LEFT_TO_TTL,
  MEMORY_STORE,
  RENEWAL_FAILED,
  STORE_NOT_OPEN,
} from './lease.messages.js';
import { RESOLVED_OPTIONS_TOKEN, type ResolvedModuleOptions } from './lease.module-definition.js';
import { LeaseEngine } from './lease/lease-engine.js';
import type { LeaseStore } from './stores/lease-store.js';

/** How many applications of this process use a store: it is closed by the last of them. */
const users = new WeakMap<LeaseStore, number>();

/** Life and death of the leases of an application (rule 11). */
@Injectable()
export class LeaseLifecycle
  implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #logger = new Logger('Lease');
  #graceEndsAt = 0;

  constructor(
    private readonly engine: LeaseEngine,
    private readonly methods: LeasedMethods,
    private readonly elections: ElectionService,
    @Inject(RESOLVED_OPTIONS_TOKEN) private readonly options: ResolvedModuleOptions,
  ) {}

  onModuleInit(): void {
    const { store } = this.engine;
    users.set(store, (users.get(store) ?? 0) + 1);
    if (!store.limits.shared) this.#logger.warn(MEMORY_STORE(store.name));
    // A store that is down does not keep the application from starting: its first claims say so.
    store.open?.().catch((error: unknown) => this.#logger.warn(STORE_NOT_OPEN(store.name, error)));
    this.engine.events.lost.subscribe(({ key, reason }) =>
      this.#logger.warn(LEASE_LOST(key, reason)),
    );
    this.engine.events.troubles.subscribe(({ key, failures, remainingMs, error }) => {
      // Once per trouble, not once per try.
      if (failures === 1) this.#logger.warn(RENEWAL_FAILED(key, remainingMs, error));
    });
  }

  /** No new scheduled work from here on. */
  onModuleDestroy(): void {
    this.methods.close();
    this.#graceEndsAt = this.#now + this.options.shutdownGrace;
  }

  /** Work in flight may finish, its leases renewed; leaders hand over as soon as theirs has. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.engine.idle(this.#graceLeft), this.elections.stop()]);
  }

  /** Requests are drained by now. What is left is stopped, then released. */
  async onApplicationShutdown(): Promise<void> {
    const left = await this.engine.close(this.#graceLeft, this.options.shutdownGrace);
    if (left.length > 0) this.#logger.warn(LEFT_TO_TTL(left));
    await this.#closeStore();
  }

  async #closeStore(): Promise<void> {
    const { store } = this.engine;
    const others = (users.get(store) ?? 1) - 1;
    users.set(store, others);
    if (others > 0) return;
    await store
      .close()
      .catch((error: unknown) => this.#logger.warn(STORE_NOT_OPEN(store.name, error)));
  }

  get #now(): number {
    return this.engine.agenda.clock.now();
  }

  get #graceLeft(): number {
    return Math.max(0, this.#graceEndsAt - this.#now);
  }
}
