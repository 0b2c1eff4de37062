import type { Claim, Grant, Refusal } from '../../lib/stores/lease-store.js';
import type { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf } from './claims.js';
import { until } from './until.js';

/** Much longer than any test: what comes sooner did not come by expiry. */
export const LONG = 600_000;

/** One who waits in line, and what it was told. */
export class Waiter {
  calls = 0;
  grant: Grant | undefined;
  readonly claim: Claim;

  constructor(
    readonly store: RedisLeaseStore,
    key: string,
    options: Partial<Claim> = {},
  ) {
    this.claim = claimOf(key, { ttl: LONG, ...options });
  }

  ask(): Promise<Grant | Refusal> {
    return this.store.enqueue(this.claim, (grant) => {
      this.calls++;
      this.grant ??= grant;
    });
  }

  async stand(): Promise<void> {
    for (;;) {
      const { calls } = this;
      const answer = await this.ask();
      if (answer.granted || answer.reason !== 'held') throw new Error(JSON.stringify(answer));
      if (answer.inLine) return;
      await until(() => this.calls > calls);
    }
  }

  turn(): Promise<Grant> {
    return until(() => this.grant);
  }
}
