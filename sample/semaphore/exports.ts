import { setTimeout } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { WithLease } from 'nestjs-lease';

@Injectable()
export class Exports {
  constructor(private readonly logger: Logger) {}

  @WithLease((tenant: string) => `exports:${tenant}`, { permits: 3, wait: '1m' })
  async export(tenant: string, file: string): Promise<void> {
    this.logger.log(`${tenant} begins ${file}`);
    await setTimeout(400);
    this.logger.log(`${tenant} ends ${file}`);
  }
}
