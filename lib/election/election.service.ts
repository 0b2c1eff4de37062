import { Inject, Injectable, Logger } from '@nestjs/common';
import { CAMPAIGN_FAILED, LEADER_STUCK } from '../lease.messages.js';
import { RESOLVED_OPTIONS_TOKEN, type ResolvedModuleOptions } from '../lease.module-definition.js';
import { assertKey } from '../lease/key.js';
import { LeaseEngine } from '../lease/lease-engine.js';
import { Leadership } from './leadership.js';

/**
 * One leader per group among the instances. For efficiency: who should act. What a deposed leader still writes is
 * kept out by its fence alone.
 *
 * @publicApi
 */
@Injectable()
export class ElectionService {
  readonly #logger = new Logger('Lease');
  readonly #leaderships = new Map<string, Leadership>();
  readonly #engine: LeaseEngine;
  readonly #options: ResolvedModuleOptions;
  #state: 'idle' | 'started' | 'stopped' = 'idle';

  /** @internal */
  constructor(engine: LeaseEngine, @Inject(RESOLVED_OPTIONS_TOKEN) options: ResolvedModuleOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  /**
   * This instance's part in a group. To ask for it is to run for it: from bootstrap on, or at once after that.
   *
   * @param group - by default the group of the module's `election` options
   */
  leadership(group: string = this.#options.election.group): Leadership {
    assertKey(group, 'group');
    let leadership = this.#leaderships.get(group);
    if (leadership === undefined) {
      leadership = new Leadership(group, this.#engine, {
        ttl: this.#options.election.ttl,
        grace: this.#options.shutdownGrace,
        campaignWhen: this.#options.election.campaignWhen,
        onError: (error) => this.#logger.error(CAMPAIGN_FAILED(group), error),
        onStuck: () => this.#logger.warn(LEADER_STUCK(group)),
      });
      this.#leaderships.set(group, leadership);
      if (this.#state === 'started') leadership.start();
    }
    return leadership;
  }

  /** @internal */
  start(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'started';
    for (const leadership of this.#leaderships.values()) leadership.start();
  }

  /**
   * Hands every leadership over; work in flight may go on for `grace`. Resolves when they are, which is as late as
   * their work stops.
   *
   * @internal
   */
  async stop(grace: number = this.#options.shutdownGrace): Promise<void> {
    this.#state = 'stopped';
    await Promise.all([...this.#leaderships.values()].map((leadership) => leadership.stop(grace)));
  }
}
