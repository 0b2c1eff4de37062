import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { CAMPAIGN_FAILED } from '../lease.messages.js';
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
export class ElectionService implements OnApplicationBootstrap {
  readonly #logger = new Logger('Lease');
  readonly #leaderships = new Map<string, Leadership>();
  readonly #engine: LeaseEngine;
  readonly #options: ResolvedModuleOptions;
  #isStarted = false;

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
      });
      this.#leaderships.set(group, leadership);
      if (this.#isStarted) leadership.start();
    }
    return leadership;
  }

  /** @internal */
  onApplicationBootstrap(): void {
    this.#isStarted = true;
    for (const leadership of this.#leaderships.values()) leadership.start();
  }

  /** Hands every leadership over. @internal */
  async stop(): Promise<void> {
    this.#isStarted = false;
    await Promise.all([...this.#leaderships.values()].map((leadership) => leadership.stop()));
  }
}
