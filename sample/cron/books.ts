import { Injectable, Logger } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { Fence, WithLease } from 'nestjs-lease';

@Injectable()
export class Books {
  /** When this instance closed them. */
  readonly closed: Date[] = [];

  constructor(private readonly logger: Logger) {}

  // Fires on every instance. Those that come second skip: no error, a line at debug level.
  @Cron(CronExpression.EVERY_SECOND)
  @WithLease()
  async close(@Fence() fence: number): Promise<void> {
    this.closed.push(new Date());
    this.logger.log(`closes the books, fence ${fence}`);
  }
}
