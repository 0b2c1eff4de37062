import { Injectable, Logger } from '@nestjs/common';
import { LeaseService, StaleFenceException } from 'nestjs-lease';
import { Ledger } from './ledger.js';

@Injectable()
export class Books {
  constructor(
    private readonly leases: LeaseService,
    private readonly ledger: Ledger,
    private readonly logger: Logger,
  ) {}

  /**
   * Writes the month twice: as it is, and through a gate.
   *
   * @param pause - what may happen to any process between its last check and its write; its renewal stands still too
   */
  async close(month: string, text: string, pause?: () => Promise<unknown>): Promise<void> {
    const lease = await this.leases.acquire('books', { ttl: '1s', wait: '10s', renew: !pause });
    const { fence } = lease;
    lease.assertHeld();
    this.logger.log(`fence ${fence}: holds the lease, and is about to write "${text}"`);
    await pause?.();
    await this.ledger.write(`${month}, without a gate`, text);
    try {
      await this.ledger.writeGuarded(`${month}, with a gate`, text, fence);
      this.logger.log(`fence ${fence}: has written`);
    } catch (error) {
      if (!(error instanceof StaleFenceException)) throw error;
      this.logger.log(
        `fence ${fence}: has written beside the gate, and is refused by it: ${error.message}`,
      );
    }
    await lease.release();
  }
}
