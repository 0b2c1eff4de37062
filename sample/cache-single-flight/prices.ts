import { setTimeout } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Lease, LeaseService } from 'nestjs-lease';
import { PriceCache, type PriceList } from './price-cache.js';

@Injectable()
export class Prices {
  /** How often this instance rebuilt a list. */
  rebuilds = 0;

  constructor(
    private readonly cache: PriceCache,
    private readonly leases: LeaseService,
    private readonly logger: Logger,
  ) {}

  async list(id: string): Promise<PriceList> {
    const cached = await this.cache.get(id);
    if (cached) return cached;
    return this.leases.run(
      `prices:${id}`,
      // Whoever waited looks again: the one before has most likely built it.
      async (lease) => (await this.cache.get(id)) ?? this.#rebuild(id, lease),
      { wait: '10s' },
    );
  }

  async #rebuild(id: string, { fence, signal }: Lease): Promise<PriceList> {
    this.rebuilds++;
    this.logger.log(`rebuilds the price list ${id}`);
    await setTimeout(500, undefined, { signal });
    const list = { id, builtUnder: fence };
    await this.cache.set(list, 60_000);
    return list;
  }
}
