import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import {
  ElectionService,
  LeaseService,
  MemoryLeaseStore,
  type Leadership,
  type LeaseEvent,
  type LeaseStore,
} from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';
import { merge, type Observable } from 'rxjs';
import { CLOSE_BOOKS } from './shop/books.js';
import { OUTBOX } from './shop/outbox.js';
import { createShopModule } from './shop/shop.module.js';
import type { World } from './shop/world.js';
import { Wire } from './wire.js';

/** One instance of the application, and its own line to the store. */
export class Instance {
  isAlive = true;

  private constructor(
    readonly name: string,
    readonly wire: Wire,
    readonly app: INestApplication,
    readonly url: string,
  ) {}

  static async start(
    name: string,
    store: LeaseStore,
    namespace: string,
    world: World,
  ): Promise<Instance> {
    const wire = new Wire(store);
    const module = createShopModule({ instance: name, store: wire, namespace, world });
    const app = await NestFactory.create(module, { logger: ['error', 'fatal'] });
    await app.listen(0, '127.0.0.1');
    return new Instance(name, wire, app, await app.getUrl());
  }

  get leases(): LeaseService {
    return this.app.get(LeaseService);
  }

  get outbox(): Leadership {
    return this.app.get(ElectionService).leadership(OUTBOX);
  }

  startBooks(): void {
    void this.app.get(SchedulerRegistry).getCronJob(CLOSE_BOOKS).start();
  }

  async stopBooks(): Promise<void> {
    await this.app.get(SchedulerRegistry).getCronJob(CLOSE_BOOKS).stop();
  }

  /** As a crash does it: nothing more is sent, nothing is given back, nothing is run. */
  kill(): void {
    this.isAlive = false;
    this.wire.cut();
    const schedule = this.app.get(SchedulerRegistry);
    for (const interval of schedule.getIntervals()) schedule.deleteInterval(interval);
  }
}

/** Three instances of one application on one store. */
export class Fleet {
  private constructor(readonly instances: readonly Instance[]) {}

  /** With a URL each instance has a Redis connection of its own; without, they share the memory of this process. */
  static async start(
    names: readonly string[],
    redisUrl: string | undefined,
    world: World,
  ): Promise<Fleet> {
    const memory = new MemoryLeaseStore();
    // Nothing of anybody else's is touched, and nothing of ours stays.
    const namespace = `nestjs-lease-demo-${process.pid}-${Date.now()}`;
    const instances: Instance[] = [];
    for (const name of names) {
      const store = redisUrl ? new RedisLeaseStore(redisUrl, { fenceRetention: '1m' }) : memory;
      instances.push(await Instance.start(name, store, namespace, world));
    }
    return new Fleet(instances);
  }

  get alive(): readonly Instance[] {
    return this.instances.filter(({ isAlive }) => isAlive);
  }

  get leader(): Instance | undefined {
    return this.alive.find(({ outbox }) => outbox.isLeader);
  }

  /** What happens to leases, anywhere. */
  get events$(): Observable<LeaseEvent> {
    return merge(...this.instances.map(({ leases }) => leases.events$));
  }

  async close(): Promise<void> {
    await Promise.all(this.instances.map(({ app }) => app.close()));
  }
}
