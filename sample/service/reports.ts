import { setTimeout } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { LeaseService } from 'nestjs-lease';

@Injectable()
export class Reports {
  constructor(
    private readonly leases: LeaseService,
    private readonly logger: Logger,
  ) {}

  /** @param giveUp - ends the waiting, such as when the client has gone away */
  build(id: string, giveUp?: AbortSignal): Promise<string> {
    return this.leases.run(
      `report:${id}`,
      async ({ fence, signal }) => {
        this.logger.log(`builds report ${id}, fence ${fence}`);
        // Everything that takes time gets the signal: it aborts when the lease is lost.
        for (let page = 1; page <= 3; page++) await setTimeout(200, undefined, { signal });
        this.logger.log(`has built report ${id}`);
        return `report ${id}, fence ${fence}`;
      },
      { wait: '5s', ...(giveUp && { signal: giveUp }) },
    );
  }

  async archive(id: string): Promise<number> {
    await using lease = await this.leases.acquire(`archive:${id}`, { wait: '5s' });
    await setTimeout(100, undefined, { signal: lease.signal });
    // Last look before the write that cannot be taken back.
    lease.assertHeld();
    this.logger.log(`archives report ${id}, fence ${lease.fence}`);
    return lease.fence;
  }
}
