import { setTimeout } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { Fence, WithLease } from 'nestjs-lease';
import { INSTANCE, World } from './world.js';

export const CLOSE_BOOKS = 'close-books';

@Injectable()
export class Books {
  constructor(
    @Inject(INSTANCE) private readonly instance: string,
    private readonly world: World,
  ) {}

  // Disabled until its scene begins.
  @Cron(CronExpression.EVERY_SECOND, { name: CLOSE_BOOKS, disabled: true })
  @WithLease('books')
  async close(@Fence() fence: number): Promise<void> {
    this.world.closings.next({ instance: this.instance, at: new Date(), fence });
    await setTimeout(250);
  }
}
