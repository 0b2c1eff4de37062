import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, type Type } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { LeaderOnly, WithLease } from 'nestjs-lease';
import { closeApps, startFleet } from '../../support/nest-app.js';

const EVERY_MINUTE = '0 * * * * *';
let ran = 0;

/** Any decorator that waits for something before it calls on: a transaction, a span, a retry. */
const Waits = (): MethodDecorator => (_target, _name, descriptor: PropertyDescriptor) => {
  const original = descriptor.value as (...args: unknown[]) => unknown;
  const wrapper = async function (this: object, ...args: unknown[]): Promise<unknown> {
    await Promise.resolve();
    return original.apply(this, args);
  };
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), wrapper);
  }
  descriptor.value = wrapper;
};

@Injectable()
class Waited {
  @Cron(EVERY_MINUTE, { timeZone: 'UTC' })
  @Waits()
  @WithLease()
  async job(): Promise<void> {
    ran++;
  }
}

@Injectable()
class Pooled {
  @Cron(EVERY_MINUTE, { timeZone: 'UTC' })
  @WithLease('pool', { permits: 3 })
  @WithLease()
  async job(): Promise<void> {
    ran++;
  }
}

@Injectable()
class Led {
  @Cron(EVERY_MINUTE, { timeZone: 'UTC' })
  @LeaderOnly('led')
  @WithLease()
  async job(): Promise<void> {
    ran++;
  }
}

beforeEach(() => {
  ran = 0;
  jest.useFakeTimers({
    now: Date.parse('2026-05-04T10:00:30Z'),
    doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'],
  });
});
afterEach(async () => {
  await closeApps();
  jest.useRealTimers();
});

describe('a @Cron method with more between @Cron and @WithLease', () => {
  it.each<[string, Type]>([
    ['a decorator that waits', Waited],
    ['a permit', Pooled],
    ['a leadership', Led],
  ])('still runs once per tick in the fleet: %s', async (_, provider) => {
    await startFleet(3, { providers: [provider], schedule: true });
    await jest.advanceTimersByTimeAsync(60_000);
    expect(ran).toBe(1);
  });
});
