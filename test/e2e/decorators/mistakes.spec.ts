import 'reflect-metadata';
import { Injectable, Module, NotFoundException } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, Observable, of } from 'rxjs';
import {
  BAD_DECORATOR_OPTION,
  BAD_DURATION,
  BAD_DURATION_RANGE,
  BAD_KEY,
  BAD_OPTION,
  EMPTY_KEYS,
  KEY_FUNCTION_THREW,
  NOT_A_METHOD,
  NOT_MANAGED,
  PARAMETER_WITHOUT_LEASE,
  SAME_DEFAULT_KEY,
  SYNC_METHOD,
  UNKNOWN_OPTION,
} from '../../../lib/lease.messages.js';
import {
  CurrentLease,
  Fence,
  LeaderOnly,
  LeaseModule,
  LeaseService,
  WithLease,
} from 'nestjs-lease';
import { startApp } from '../../support/nest-app.js';

let ran = 0;
/** Runs what is a mistake and gives the error; the method under the lease must not have run. */
async function failureOf(attempt: () => unknown): Promise<Error & { cause?: unknown }> {
  ran = 0;
  try {
    await attempt();
  } catch (error) {
    expect(ran).toBe(0);
    return error as Error;
  }
  throw new Error('Nothing failed.');
}

/** For what the compiler would have refused. */
const untyped = (decorator: unknown): MethodDecorator & PropertyDecorator => decorator as never;

@Injectable()
class Job {
  @WithLease()
  async run(): Promise<void> {
    ran++;
  }

  @WithLease()
  observable(): Observable<number> {
    ran++;
    return of(1);
  }

  @WithLease()
  async *generator(): AsyncGenerator<number> {
    yield ++ran;
  }

  @LeaderOnly()
  async lead(): Promise<void> {
    ran++;
  }
}

describe('an object that Nest did not make', () => {
  it.each([
    ['made with new', undefined],
    ['made by useFactory', { provide: Job, useFactory: () => new Job() }],
    ['given by useValue', { provide: Job, useValue: new Job() }],
  ])('runs nothing and says why: %s', async (_, provider) => {
    const job = provider ? (await startApp({ providers: [provider] })).get(Job) : new Job();
    expect((await failureOf(() => job.run())).message).toBe(NOT_MANAGED('Job.run'));
    expect((await failureOf(() => job.lead())).message).toBe(NOT_MANAGED('Job.lead'));
    expect((await failureOf(() => firstValueFrom(job.observable()))).message).toBe(
      NOT_MANAGED('Job.observable'),
    );
    expect((await failureOf(() => job.generator().next())).message).toBe(
      NOT_MANAGED('Job.generator'),
    );
  });

  it('a method that was taken off its object runs nothing and says why', async () => {
    const { run } = (await startApp({ providers: [Job] })).get(Job);
    const failure = await failureOf(() => run.call(undefined as never));
    expect(failure.message).toBe(NOT_MANAGED('run'));
  });
});

describe('an application without the module', () => {
  it('does not start, and Nest’s own error names LeaseModule.forRoot()', async () => {
    const failure = await failureOf(() => startApp({ providers: [Job], lease: false }));
    expect(failure.message).toContain('LeaseModule.forRoot()');
    expect(failure.message).toContain('Job');
  });

  it('does not start when the module is not global and not imported where it is used', async () => {
    @Module({ providers: [Job] })
    class Feature {}
    const imports = [Feature, LeaseModule.forRoot({ isGlobal: false })];
    const failure = await failureOf(() => startApp({ imports, lease: false }));
    expect(failure.message).toContain('LeaseModule.forRoot()');
  });
});

describe('a key function', () => {
  const HTTP = new NotFoundException();
  let makeKey: () => unknown = () => 'key';

  @Injectable()
  class Keyed {
    prefix = 'order';

    @WithLease(() => makeKey() as string)
    async run(): Promise<void> {
      ran++;
    }

    @WithLease(function (this: Keyed, id: string) {
      return `${this.prefix}:${id}`;
    })
    async own(_id: string): Promise<void> {}
  }

  it.each([
    ['undefined', undefined, BAD_KEY('key', undefined, 'is not a string')],
    ['null', null, BAD_KEY('key', null, 'is not a string')],
    ['a number', 7, BAD_KEY('key', 7, 'is not a string')],
    ['an object', {}, BAD_KEY('key', {}, 'is not a string')],
    ['a promise', Promise.resolve('key'), BAD_KEY('key', {}, 'is not a string')],
    ['nothing', '', BAD_KEY('key', '', 'is empty')],
    ['control characters', 'a\nb', BAD_KEY('key', 'a\nb', 'has a control character in it')],
    ['too much', 'x'.repeat(513), BAD_KEY('key', 'x'.repeat(513), 'is longer than 512 bytes')],
    ['no keys', [], EMPTY_KEYS()],
    ['a bad key among several', ['a', undefined], BAD_KEY('key', undefined, 'is not a string')],
  ])(
    'that returns %s is told so by the name of the method, and nothing runs (rule 14)',
    async (_, key, reason) => {
      const app = await startApp({ providers: [Keyed] });
      makeKey = () => key;
      const failure = await failureOf(() => app.get(Keyed).run());
      expect(failure.message).toBe(BAD_DECORATOR_OPTION('Keyed.run', reason));
      expect(app.get(LeaseService).held()).toEqual([]);
    },
  );

  it('that throws is told so by the name of the method, with its error as the cause', async () => {
    const app = await startApp({ providers: [Keyed] });
    const error = new Error('no tenant');
    makeKey = () => {
      throw error;
    };
    const failure = await failureOf(() => app.get(Keyed).run());
    expect(failure.message).toBe(KEY_FUNCTION_THREW('Keyed.run'));
    expect(failure.cause).toBe(error);
  });

  it('that throws an HttpException answers with it, the same object', async () => {
    const app = await startApp({ providers: [Keyed] });
    makeKey = () => {
      throw HTTP;
    };
    expect(await failureOf(() => app.get(Keyed).run())).toBe(HTTP);
  });

  it('is called on the object of the method', async () => {
    const app = await startApp({ providers: [Keyed] });
    await using _ = await app.get(LeaseService).acquire('order:7');
    await expect(app.get(Keyed).own('7')).rejects.toMatchObject({ key: 'order:7' });
  });
});

describe('a synchronous method', () => {
  it('is told when the class is defined, where the compiler left word of it', () => {
    expect(() => {
      class Sync {
        @untyped(WithLease())
        run(): string {
          return '';
        }
      }
      return Sync;
    }).toThrow(new TypeError(SYNC_METHOD('Sync.run')));
  });

  it.each(['nothing', 'value'] as const)(
    'is told at its first call otherwise: %s',
    async (name) => {
      @Injectable()
      class Sync {
        @untyped(WithLease())
        nothing(): void {}

        @untyped(WithLease())
        value(): unknown {
          return 7;
        }
      }
      const app = await startApp({ providers: [Sync] });
      const failure = await failureOf(() => app.get(Sync)[name]());
      expect(failure).toEqual(new TypeError(SYNC_METHOD(`Sync.${name}`)));
      expect(await app.get(LeaseService).inspect(`Sync.${name}`)).toBeNull();
    },
  );

  it('is not suspected of a method that returns a promise without saying so', async () => {
    @Injectable()
    class Terse {
      @WithLease()
      run() {
        return Promise.resolve('ran');
      }
    }
    const app = await startApp({ providers: [Terse] });
    expect(await app.get(Terse).run()).toBe('ran');
  });
});

describe('a decorator in the wrong place', () => {
  it.each([
    ['WithLease', WithLease()],
    ['LeaderOnly', LeaderOnly()],
  ])(
    '@%s on a static method, a property or an accessor says that it is for methods',
    (name, decorator) => {
      expect(() => {
        class Wrong {
          @untyped(decorator)
          static async method(): Promise<void> {}
        }
        return Wrong;
      }).toThrow(new TypeError(NOT_A_METHOD(name, 'method')));
      expect(() => {
        class Wrong {
          @untyped(decorator)
          property = 1;
        }
        return Wrong;
      }).toThrow(new TypeError(NOT_A_METHOD(name, 'property')));
      expect(() => {
        class Wrong {
          @untyped(decorator)
          get accessor(): number {
            return 1;
          }
        }
        return Wrong;
      }).toThrow(new TypeError(NOT_A_METHOD(name, 'accessor')));
    },
  );

  it('@Fence() without a lease stops the start and names the method', async () => {
    @Injectable()
    class Unfilled {
      async run(@Fence() _fence: number): Promise<void> {}
    }
    const failure = await failureOf(() => startApp({ providers: [Unfilled] }));
    expect(failure).toEqual(new TypeError(PARAMETER_WITHOUT_LEASE('Fence', 'Unfilled.run')));
  });

  it('@CurrentLease() without a lease stops the start in a class that inherits it', async () => {
    abstract class Base {
      async run(@CurrentLease() _lease: unknown): Promise<void> {}
    }
    @Injectable()
    class Derived extends Base {}
    const failure = await failureOf(() => startApp({ providers: [Derived] }));
    expect(failure.message).toBe(PARAMETER_WITHOUT_LEASE('CurrentLease', 'Derived.run'));
  });

  it('@Fence() in an override that forgot @WithLease stops the start', async () => {
    abstract class Base {
      @WithLease()
      async run(@Fence() _fence?: number): Promise<void> {}
    }
    @Injectable()
    class Derived extends Base {
      override async run(@Fence() _fence?: number): Promise<void> {}
    }
    const failure = await failureOf(() => startApp({ providers: [Derived] }));
    expect(failure.message).toBe(PARAMETER_WITHOUT_LEASE('Fence', 'Derived.run'));
  });
});

describe('a bad option', () => {
  const KNOWN =
    'ttl, wait, signal, renew, minHold, maxHold, permits, once, remember, awaitRelease, onHeld, onUnavailable, oncePerTick, fenced'.split(
      ', ',
    );

  it.each<[string, object, string]>([
    ['ttl without a unit', { ttl: '10 s' }, BAD_DURATION('ttl', '10 s')],
    ['ttl of nothing', { ttl: 0 }, BAD_DURATION_RANGE('ttl', 0, 1, 86_400_000)],
    ['negative wait', { wait: -1 }, BAD_DURATION_RANGE('wait', -1, 0, Infinity)],
    ['permits', { permits: 1.5 }, BAD_OPTION('permits', 1.5, 'a whole number')],
    ['renew', { renew: 'no' }, BAD_OPTION('renew', 'no', 'true or false')],
    ['once', { once: '' }, BAD_KEY('once', '', 'is empty')],
  ])('stops the start and names the method and the option: %s', async (_, options, reason) => {
    @Injectable()
    class Bad {
      @WithLease('key', options)
      async run(): Promise<void> {}
    }
    const failure = await failureOf(() => startApp({ providers: [Bad] }));
    expect(failure.message).toBe(BAD_DECORATOR_OPTION('Bad.run', reason));
    expect([TypeError, RangeError]).toContain(failure.constructor);
  });

  it.each<[string, () => unknown, string]>([
    [
      'onHeld',
      () => WithLease('key', { onHeld: 'run' } as never),
      BAD_OPTION('onHeld', 'run', 'one of throw, skip'),
    ],
    [
      'onUnavailable',
      () => WithLease('key', { onUnavailable: 1 } as never),
      BAD_OPTION('onUnavailable', 1, 'one of throw, skip, run'),
    ],
    [
      'oncePerTick',
      () => WithLease('key', { oncePerTick: 'yes' } as never),
      BAD_OPTION('oncePerTick', 'yes', 'one of true, false'),
    ],
    ['unknown', () => WithLease('key', { tll: 1 } as never), UNKNOWN_OPTION('tll', KNOWN)],
    ['options', () => WithLease('key', null as never), BAD_OPTION('options', null, 'an object')],
    ['an empty key', () => WithLease(''), BAD_KEY('key', '', 'is empty')],
    ['no keys', () => WithLease([]), EMPTY_KEYS()],
    ['a number as the key', () => WithLease(7 as never), BAD_KEY('key', 7, 'is not a string')],
    [
      'onNotLeader',
      () => LeaderOnly('g', { onNotLeader: 'run' } as never),
      BAD_OPTION('onNotLeader', 'run', 'one of throw, skip'),
    ],
    ['an empty group', () => LeaderOnly(''), BAD_KEY('group', '', 'is empty')],
  ])('is told when the class is defined, by method and option: %s', (_, decorator, reason) => {
    expect(() => {
      class Bad {
        @untyped(decorator())
        async run(): Promise<void> {}
      }
      return Bad;
    }).toThrow(BAD_DECORATOR_OPTION('Bad.run', reason));
  });
});

describe('two classes of the same name', () => {
  const classWith = (key?: string) => {
    @Injectable()
    class Twin {
      @WithLease(key)
      async run(): Promise<void> {}
    }
    return Twin;
  };

  it('may not share a default key without knowing', async () => {
    const providers = [classWith(), classWith()];
    const failure = await failureOf(() => startApp({ providers }));
    expect(failure.message).toBe(SAME_DEFAULT_KEY('Twin.run'));
  });

  it('may each name a key', async () => {
    await startApp({ providers: [classWith('a'), classWith('b')] });
  });

  it('are not suspected when one class is a provider of two modules', async () => {
    const Twin = classWith();
    @Module({ providers: [Twin] })
    class A {}
    @Module({ providers: [Twin] })
    class B {}
    await startApp({ imports: [A, B] });
  });
});

describe('a scheduled method', () => {
  it('that cannot have its lease is not run without one', async () => {
    @Injectable()
    class Scheduled {
      @Cron('0 0 1 1 *')
      @WithLease(() => undefined as never)
      async run(): Promise<void> {
        ran++;
      }
    }
    const app = await startApp({ providers: [Scheduled], schedule: true });
    const failure = await failureOf(() => app.get(Scheduled).run());
    expect(failure.message).toContain('Scheduled.run');
  });
});
