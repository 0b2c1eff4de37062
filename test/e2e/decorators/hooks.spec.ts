import { Controller, Injectable, Scope } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { HOOK_FAILED, HOOK_NOT_STATIC } from '../../../lib/lease.messages.js';
import { LeaseService, OnLeaseLost, type LeaseLostEvent } from 'nestjs-lease';
import { CapturingLogger, startApp, startHttp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

let told: string[] = [];
const note = (hook: string, { key, reason }: LeaseLostEvent): void => {
  told.push(`${hook}: ${key} ${reason}`);
};

@Injectable()
class Listener {
  name = 'listener';

  @OnLeaseLost()
  onAny(loss: LeaseLostEvent): void {
    note(`${this.name} any`, loss);
  }

  @OnLeaseLost('books')
  async onBooks(loss: LeaseLostEvent): Promise<void> {
    note('books', loss);
  }

  @OnLeaseLost('books')
  @OnLeaseLost('orders')
  onTwo(loss: LeaseLostEvent): void {
    note('two', loss);
  }
}

/** Loses a lease on the key: held for longer than it may be. */
async function lose(leases: LeaseService, key: string): Promise<void> {
  const lease = await leases.acquire(key, { maxHold: 200 });
  await until(() => !lease.isHeld);
}

describe('@OnLeaseLost', () => {
  it('is told of every loss without a key, and of its own with one', async () => {
    told = [];
    const leases = (await startApp({ providers: [Listener] })).get(LeaseService);
    await lose(leases, 'books');
    await lose(leases, 'orders');
    await lose(leases, 'other');
    expect(told).toEqual([
      'listener any: books max-hold',
      'books: books max-hold',
      'two: books max-hold',
      'listener any: orders max-hold',
      'two: orders max-hold',
      'listener any: other max-hold',
    ]);
  });

  it('is not told of a release', async () => {
    told = [];
    const leases = (await startApp({ providers: [Listener] })).get(LeaseService);
    await (await leases.acquire('books')).release();
    expect(told).toEqual([]);
  });

  it('works on controllers and for a method that a class inherits', async () => {
    told = [];
    @Controller()
    class Derived extends Listener {
      override name = 'derived';
    }
    const { app } = await startHttp({ controllers: [Derived] });
    await lose(app.get(LeaseService), 'orders');
    expect(told).toEqual(['derived any: orders max-hold', 'two: orders max-hold']);
  });

  it('that throws or rejects is logged and hurts nobody (rule 12)', async () => {
    told = [];
    const boom = new Error('boom');
    @Injectable()
    class Broken {
      @OnLeaseLost()
      throws(): void {
        throw boom;
      }
      @OnLeaseLost()
      async rejects(): Promise<void> {
        throw boom;
      }
    }
    const logger = new CapturingLogger();
    const app = await startApp({ providers: [Broken, Listener], logger });
    await lose(app.get(LeaseService), 'other');
    await until(() => logger.of('error').length === 2);
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([
      { level: 'error', message: HOOK_FAILED('Broken.throws'), context: expect.anything() },
      { level: 'error', message: HOOK_FAILED('Broken.rejects'), context: expect.anything() },
    ]);
    expect(told).toEqual(['listener any: other max-hold']);
    await (await app.get(LeaseService).acquire('other')).release();
  });

  it('that is slow delays nobody', async () => {
    told = [];
    @Injectable()
    class Slow {
      @OnLeaseLost()
      async never(): Promise<void> {
        await new Promise(() => {});
      }
    }
    const app = await startApp({ providers: [Slow, Listener] });
    await lose(app.get(LeaseService), 'a');
    await lose(app.get(LeaseService), 'b');
    expect(told).toHaveLength(2);
  });

  it.each([
    ['request-scoped', Scope.REQUEST],
    ['transient', Scope.TRANSIENT],
  ])('on a %s class is warned of at start and never called', async (_, scope) => {
    told = [];
    @Injectable({ scope })
    class Scoped {
      @OnLeaseLost()
      onLost(loss: LeaseLostEvent): void {
        note('scoped', loss);
      }
    }
    const logger = new CapturingLogger();
    const app = await startApp({ providers: [Scoped], logger });
    expect(logger.of('warn')).toContain(HOOK_NOT_STATIC('Scoped.onLost'));
    await lose(app.get(LeaseService), 'books');
    expect(told).toEqual([]);
  });

  it('works for useFactory and useValue instances: it needs nothing injected', async () => {
    told = [];
    const app = await startApp({
      providers: [{ provide: 'LISTENER', useFactory: () => new Listener() }],
    });
    await lose(app.get(LeaseService), 'other');
    expect(told).toEqual(['listener any: other max-hold']);
  });

  it('with a bad key is told when the class is defined', () => {
    expect(() => {
      class Bad {
        @OnLeaseLost('')
        onLost(): void {}
      }
      return Bad;
    }).toThrow(RangeError);
  });
});
