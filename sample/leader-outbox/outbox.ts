import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import {
  CurrentLease,
  LeaderOnly,
  OnDeposed,
  OnElected,
  type DeposedEvent,
  type ElectedEvent,
  Lease,
} from 'nestjs-lease';
import { OutboxTable } from './outbox-table.js';

@Injectable()
export class Outbox {
  constructor(
    private readonly table: OutboxTable,
    private readonly logger: Logger,
  ) {}

  @Interval(500)
  @LeaderOnly('outbox')
  async dispatch(@CurrentLease() lease: Lease): Promise<void> {
    for (const message of this.table.waiting) {
      // Whoever was deposed stops between two messages …
      lease.assertHeld();
      // … and what it had already sent on its way is refused by its fence.
      if (this.table.markSent(message, lease.fence)) this.logger.log(`sends message ${message.id}`);
    }
  }

  @OnElected('outbox')
  elected({ fence }: ElectedEvent): void {
    this.logger.log(`leads now, fence ${fence}`);
  }

  @OnDeposed('outbox')
  deposed({ reason }: DeposedEvent): void {
    this.logger.log(`leads no more: ${reason}`);
  }

  /** Every instance serves requests that leave messages. */
  @Interval(1_000)
  receive(): void {
    this.table.add();
  }
}
