import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { Fence, LeaderOnly } from 'nestjs-lease';
import { INSTANCE, World } from './world.js';

export const OUTBOX = 'outbox';

@Injectable()
export class Outbox {
  constructor(
    @Inject(INSTANCE) private readonly instance: string,
    private readonly world: World,
  ) {}

  @Interval(400)
  @LeaderOnly(OUTBOX)
  async dispatch(@Fence() fence: number): Promise<void> {
    this.world.dispatches.next({ instance: this.instance, fence });
  }
}
