import { setTimeout } from 'node:timers/promises';
import { Controller, Inject, Param, Post } from '@nestjs/common';
import { WithLease } from 'nestjs-lease';
import { INSTANCE, World } from './world.js';

@Controller('orders')
export class OrdersController {
  constructor(
    @Inject(INSTANCE) private readonly instance: string,
    private readonly world: World,
  ) {}

  @Post(':id/pay')
  @WithLease((id: string) => `order:${id}`)
  async pay(@Param('id') id: string): Promise<{ order: string; paidBy: string }> {
    this.world.charges.next({ instance: this.instance, order: id });
    await setTimeout(1_500);
    return { order: id, paidBy: this.instance };
  }
}
