import { Injectable } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import {
  firstValueFrom,
  NEVER,
  Observable,
  of,
  startWith,
  Subject,
  throwError,
  toArray,
} from 'rxjs';
import {
  CurrentLease,
  Fence,
  LeaseLostException,
  LeaseService,
  WithLease,
  type Lease,
} from 'nestjs-lease';
import { startApp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

const boom = new Error('boom');

@Injectable()
class Results {
  source = new Subject<number>();
  subscribed = 0;
  finish: (() => void) | undefined;
  cleaned: string[] = [];

  constructor(private readonly leases: LeaseService) {}

  get key(): string | undefined {
    return this.leases.current()?.key;
  }

  @WithLease('key')
  async promise(): Promise<string | undefined> {
    await new Promise<void>((resolve) => (this.finish = resolve));
    return this.key;
  }

  @WithLease('key')
  thenable(): Promise<string> {
    return Promise.resolve('not async, but a promise');
  }

  @WithLease('key')
  async fails(): Promise<never> {
    throw boom;
  }

  @WithLease('key')
  observable(@Fence() fence?: number): Observable<number> {
    return new Observable((subscriber) => {
      this.subscribed++;
      if (fence === undefined) subscriber.error(new Error('no fence'));
      return this.source.subscribe(subscriber);
    });
  }

  @WithLease('key')
  values(): Observable<string | undefined> {
    return new Observable((subscriber) => {
      setImmediate(() => {
        subscriber.next(this.key);
        subscriber.complete();
      });
    });
  }

  @WithLease('key')
  atOnce(): Observable<number> {
    return this.source.pipe(startWith(1));
  }

  @WithLease('key')
  failing(): Observable<never> {
    return throwError(() => boom);
  }

  @WithLease('key', { maxHold: 200 })
  short(): Observable<never> {
    return NEVER;
  }

  @WithLease('key')
  async promised(): Promise<Observable<number>> {
    return this.source;
  }

  @WithLease('key', { maxHold: 200 })
  async promisedShort(): Promise<Observable<number>> {
    return this.source;
  }

  @WithLease('key')
  async *steps(@CurrentLease() lease?: Lease): AsyncGenerator<unknown, string, string | undefined> {
    try {
      const said = yield `${lease!.key} ${this.key}`;
      await new Promise((resolve) => setImmediate(resolve));
      yield `${said} ${this.key}`;
      return 'done';
    } finally {
      this.cleaned.push(`cleaned in ${this.key}`);
    }
  }

  @WithLease('key')
  async *failingSteps(): AsyncGenerator<number> {
    yield 1;
    throw boom;
  }

  @WithLease('key', { maxHold: 200 })
  async *shortSteps(@CurrentLease() lease?: Lease): AsyncGenerator<Lease> {
    try {
      for (;;) yield lease!;
    } finally {
      this.cleaned.push('cleaned');
    }
  }

  @WithLease('key')
  async *recovering(): AsyncGenerator<string> {
    try {
      yield 'first';
    } catch {
      yield `recovered in ${this.key}`;
    }
  }

  @WithLease('key')
  async *slowToClean(): AsyncGenerator<number, void> {
    try {
      yield 1;
    } finally {
      await new Promise<void>((resolve) => (this.finish = resolve));
    }
  }

  @WithLease('key')
  async *failingClean(): AsyncGenerator<number, void> {
    try {
      yield 1;
    } finally {
      await Promise.reject(boom);
    }
  }

  @WithLease('key', { onHeld: 'skip' })
  async *skipped(): AsyncGenerator<number> {
    yield 1;
  }

  @WithLease('key', { onHeld: 'skip' })
  skippedObservable(): Observable<number> {
    return of(1);
  }
}

async function start() {
  const app = await startApp({ providers: [Results] });
  const leases = app.get(LeaseService);
  const isHeld = async (): Promise<boolean> => (await leases.inspect('key')) !== null;
  const isFree = async (): Promise<boolean> => !(await isHeld());
  return { results: app.get(Results), leases, isHeld, isFree };
}

describe('a promise', () => {
  it('holds the lease until it settles, and runs inside it', async () => {
    const { results, isHeld, isFree } = await start();
    const result = results.promise();
    const finish = await until(() => results.finish);
    expect(await isHeld()).toBe(true);
    finish();
    expect(await result).toBe('key');
    expect(await isFree()).toBe(true);
  });

  it('passes its rejection through, the same object, and frees the lease (rule 13)', async () => {
    const { results, isFree } = await start();
    await expect(results.fails()).rejects.toBe(boom);
    expect(await isFree()).toBe(true);
  });

  it('may come from a method that is not async itself', async () => {
    const { results } = await start();
    expect(await results.thenable()).toBe('not async, but a promise');
  });
});

describe('an Observable', () => {
  it('takes the lease when it is subscribed to, not before', async () => {
    const { results, isHeld, isFree } = await start();
    const observable = results.observable();
    expect(await isFree()).toBe(true);
    const subscription = observable.subscribe();
    await until(() => results.subscribed === 1);
    expect(await isHeld()).toBe(true);
    subscription.unsubscribe();
    await until(isFree);
  });

  it('holds the lease until it completes', async () => {
    const { results, isHeld, isFree } = await start();
    const all = firstValueFrom(results.observable().pipe(toArray()));
    await until(() => results.subscribed === 1);
    results.source.next(1);
    results.source.next(2);
    expect(await isHeld()).toBe(true);
    results.source.complete();
    expect(await all).toEqual([1, 2]);
    expect(await isFree()).toBe(true);
  });

  it('has given the lease back when its subscriber hears of its error, the same object (rule 13)', async () => {
    const { results, isFree } = await start();
    await expect(firstValueFrom(results.failing())).rejects.toBe(boom);
    expect(await isFree()).toBe(true);
  });

  it('is subscribed to inside the lease', async () => {
    const { results } = await start();
    expect(await firstValueFrom(results.values())).toBe('key');
  });

  it('errs with LeaseLostException when the lease is lost (rule 5)', async () => {
    const { results } = await start();
    await expect(firstValueFrom(results.short())).rejects.toBeInstanceOf(LeaseLostException);
  });

  it('errs with the refusal when the key is held, and is not subscribed to', async () => {
    const { results, leases } = await start();
    await using _ = await leases.acquire('key');
    await expect(firstValueFrom(results.observable())).rejects.toMatchObject({
      code: 'LEASE_HELD',
    });
    expect(results.subscribed).toBe(0);
  });

  it("completes without a value with onHeld: 'skip'", async () => {
    const { results, leases } = await start();
    await using _ = await leases.acquire('key');
    expect(await firstValueFrom(results.skippedObservable().pipe(toArray()))).toEqual([]);
  });

  it('is unsubscribed from with its subscriber, though that had enough at a value that came at once', async () => {
    const { results, isFree } = await start();
    expect(await firstValueFrom(results.atOnce())).toBe(1);
    await until(isFree);
    expect(results.source.observed).toBe(false);
  });

  it('leaves nothing behind when it is unsubscribed from before the lease is there', async () => {
    const { results, isFree, leases } = await start();
    results.observable().subscribe().unsubscribe();
    await until(async () => leases.held().length === 0 && (await isFree()));
    expect(results.subscribed).toBe(0);
  });

  it('takes a lease of its own for each subscriber', async () => {
    const { results } = await start();
    const observable = results.observable();
    const first = observable.subscribe();
    await until(() => results.subscribed === 1);
    await expect(firstValueFrom(observable)).rejects.toMatchObject({ code: 'LEASE_HELD' });
    first.unsubscribe();
  });
});

describe('a promise of an Observable', () => {
  it('holds the lease until the Observable completes', async () => {
    const { results, isHeld, isFree } = await start();
    const observable = await results.promised();
    expect(await isHeld()).toBe(true);
    const all = firstValueFrom(observable.pipe(toArray()));
    results.source.next(1);
    results.source.complete();
    expect(await all).toEqual([1]);
    await until(isFree);
  });

  it('holds the lease until the Observable errs', async () => {
    const { results, isFree } = await start();
    const failed = firstValueFrom(await results.promised());
    results.source.error(boom);
    await expect(failed).rejects.toBe(boom);
    await until(isFree);
  });

  it('holds the lease until the Observable is unsubscribed from', async () => {
    const { results, isFree } = await start();
    (await results.promised()).subscribe().unsubscribe();
    await until(isFree);
  });

  it('errs when the lease is lost', async () => {
    const { results } = await start();
    const failed = firstValueFrom(await results.promisedShort());
    await expect(failed).rejects.toBeInstanceOf(LeaseLostException);
  });

  it('is told of a loss that came before anybody subscribed, and holds nothing', async () => {
    const { results, leases } = await start();
    const observable = await results.promisedShort();
    await until(() => leases.held().length === 0);
    await expect(firstValueFrom(observable)).rejects.toBeInstanceOf(LeaseLostException);
  });
});

describe('an async generator', () => {
  it('runs every step inside the lease, passes what it is sent, and frees the lease after its last', async () => {
    const { results, isHeld, isFree } = await start();
    const steps = results.steps();
    expect(await isFree()).toBe(true);
    expect(await steps.next()).toEqual({ done: false, value: 'key key' });
    expect(await isHeld()).toBe(true);
    expect(await steps.next('hello')).toEqual({ done: false, value: 'hello key' });
    expect(await steps.next()).toEqual({ done: true, value: 'done' });
    expect(await isFree()).toBe(true);
  });

  it('frees the lease when its consumer leaves early, after its own finally', async () => {
    const { results, isFree } = await start();
    for await (const _ of results.steps()) break;
    expect(results.cleaned).toEqual(['cleaned in key']);
    expect(await isFree()).toBe(true);
  });

  it('frees the lease when it throws, the same object (rule 13)', async () => {
    const { results, isFree } = await start();
    const steps = results.failingSteps();
    await steps.next();
    await expect(steps.next()).rejects.toBe(boom);
    expect(await isFree()).toBe(true);
  });

  it('is told what its consumer throws into it', async () => {
    const { results, isFree } = await start();
    const steps = results.steps();
    await steps.next();
    await expect(steps.throw(boom)).rejects.toBe(boom);
    expect(results.cleaned).toEqual(['cleaned in key']);
    expect(await isFree()).toBe(true);
  });

  it('may recover from what its consumer throws into it, and goes on under the lease', async () => {
    const { results, isHeld, isFree } = await start();
    const steps = results.recovering();
    await steps.next();
    expect(await steps.throw(boom)).toEqual({ done: false, value: 'recovered in key' });
    expect(await isHeld()).toBe(true);
    await steps.next();
    expect(await isFree()).toBe(true);
  });

  it('keeps the lease until its clean-up is over (rule 11)', async () => {
    const { results, isHeld, isFree } = await start();
    const steps = results.slowToClean();
    await steps.next();
    const left = steps.return(undefined);
    const finish = await until(() => results.finish);
    expect(await isHeld()).toBe(true);
    finish();
    await left;
    expect(await isFree()).toBe(true);
  });

  it('tells of a clean-up that failed, and frees the lease', async () => {
    const { results, isFree } = await start();
    const steps = results.failingClean();
    await steps.next();
    await expect(steps.return(undefined)).rejects.toBe(boom);
    expect(await isFree()).toBe(true);
  });

  it('hands on the value its consumer returns with', async () => {
    const { results } = await start();
    const steps = results.steps();
    await steps.next();
    expect(await steps.return('enough')).toEqual({ done: true, value: 'enough' });
  });

  it('takes no further step after the lease was lost (rule 4)', async () => {
    const { results } = await start();
    const steps = results.shortSteps();
    const { value: lease } = await steps.next();
    await until(() => !lease.isHeld);
    await expect(steps.next()).rejects.toBeInstanceOf(LeaseLostException);
    expect(results.cleaned).toEqual(['cleaned']);
  });

  it('rejects its first step when the key is held', async () => {
    const { results, leases } = await start();
    await using _ = await leases.acquire('key');
    await expect(results.steps().next()).rejects.toMatchObject({ code: 'LEASE_HELD' });
  });

  it("yields nothing with onHeld: 'skip'", async () => {
    const { results, leases } = await start();
    await using _ = await leases.acquire('key');
    expect(await results.skipped().next()).toEqual({ done: true, value: undefined });
  });

  it('takes no lease when it is left before its first step', async () => {
    const { results, leases } = await start();
    await results.steps().return('');
    expect(leases.held()).toEqual([]);
    expect(results.cleaned).toEqual([]);
  });
});
