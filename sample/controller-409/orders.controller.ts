import { setTimeout } from 'node:timers/promises';
import { Controller, Logger, Param, Post } from '@nestjs/common';
import { WithLease } from 'nestjs-lease';

@Controller('orders')
export class OrdersController {
  constructor(private readonly logger: Logger) {}

  @Post(':id/pay')
  @WithLease((id: string) => `order:${id}`)
  async pay(@Param('id') id: string): Promise<{ order: string; status: string }> {
    this.logger.log(`charges the card for order ${id}`);
    await setTimeout(1_000);
    return { order: id, status: 'paid' };
  }
}
