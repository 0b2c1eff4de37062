import 'reflect-metadata';
import type { INestApplication, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';
import { MemoryLeaseStore, type LeaseStore } from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';
import { startRedis, type RedisServer } from '../../support/redis-server.js';

type CreateAppModule = (store: LeaseStore, instance: string) => Type;

/** Starts instances of a sample on one store, with HTTP on free loopback ports. */
export type Start = (
  createAppModule: CreateAppModule,
  instances?: readonly string[],
) => Promise<INestApplication[]>;

/** The tests of a sample, once on the memory store and once on a redis-server of their own. */
export function onEveryStore(sample: string, tests: (start: Start) => void): void {
  describe(`sample ${sample} on the memory store`, () => {
    tests(starter(() => new MemoryLeaseStore()));
  });

  describe(`sample ${sample} on Redis`, () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());
    tests(starter(() => new RedisLeaseStore(redis.url)));
  });
}

function starter(createStore: () => LeaseStore): Start {
  const apps: INestApplication[] = [];
  afterEach(async () => {
    await Promise.all(apps.splice(0).map((app) => app.close()));
  });
  return async (createAppModule, instances = ['one', 'two']) => {
    const store = createStore();
    for (const instance of instances) {
      const options = { logger: false, abortOnError: false, forceCloseConnections: true } as const;
      const app = await NestFactory.create(createAppModule(store, instance), options);
      apps.push(app);
      await app.listen(0, '127.0.0.1');
    }
    return [...apps];
  };
}
