import { of, type Observable } from 'rxjs';
import {
  CurrentLease,
  Fence,
  LeaderOnly,
  WithLease,
  type Duration,
  type Leadership,
  type Lease,
  type LeaseModuleOptions,
  type LeaseService,
} from 'nestjs-lease';

/**
 * Nothing here is run: `tsc` reads it. A line under `@ts-expect-error` that compiles is an error of this file.
 */
export class WhatMayBeLeased {
  @WithLease()
  async promise(): Promise<void> {}

  @WithLease('key')
  withoutAsync(): Promise<number> {
    return Promise.resolve(1);
  }

  @WithLease()
  observable(): Observable<number> {
    return of(1);
  }

  @WithLease()
  async promisedObservable(): Promise<Observable<number>> {
    return of(1);
  }

  @WithLease()
  async *generator(): AsyncGenerator<number, string, boolean> {
    yield 1;
    return '';
  }

  @WithLease()
  async *inferredGenerator() {
    yield 1;
  }

  @LeaderOnly()
  async leader(): Promise<void> {}

  @WithLease()
  async generic<T>(value: T): Promise<T> {
    return value;
  }

  @WithLease()
  protected async hidden(): Promise<void> {}

  @WithLease()
  async [Symbol.asyncDispose](): Promise<void> {}

  // @ts-expect-error a lease is taken and given back over time: not around a method that is over at once
  @WithLease()
  sync(): void {}

  // @ts-expect-error the same with a value
  @WithLease('key')
  syncValue(): string {
    return '';
  }

  // @ts-expect-error a method that is sometimes synchronous
  @WithLease()
  sometimes(): Promise<string> | string {
    return '';
  }

  // @ts-expect-error a synchronous generator
  @WithLease()
  *syncGenerator(): Generator<number> {
    yield 1;
  }

  // @ts-expect-error for leaders too
  @LeaderOnly('group')
  syncLeader(): number {
    return 1;
  }

  // @ts-expect-error only methods
  @WithLease()
  property = 1;

  // @ts-expect-error only methods
  @LeaderOnly()
  leaderProperty = 1;
}

export class KeysOfTheMethodsOwnParameters {
  @WithLease((id: string) => `order:${id}`)
  async same(_id: string): Promise<void> {}

  @WithLease((from: string, to: string) => [from, to])
  async several(_from: string, _to: string, _amount: number): Promise<void> {}

  @WithLease(() => 'key')
  async fewer(_id: string): Promise<void> {}

  @WithLease((id: string) => id)
  async withFence(_id: string, @Fence() _fence?: number): Promise<void> {}

  @WithLease((id: string) => id)
  async withLease(_id: string, @CurrentLease() _lease?: Lease): Promise<void> {}

  @WithLease((id: string | number) => String(id))
  async wider(_id: string): Promise<void> {}

  @WithLease((order: { id: string }) => order.id)
  async narrowerThanTheArgument(_order: { id: string; total: number }): Promise<void> {}

  @WithLease((...ids: string[]) => ids)
  async rest(..._ids: string[]): Promise<void> {}

  @WithLease(['a', 'b'] as const)
  async readonlyKeys(): Promise<void> {}

  // @ts-expect-error the method's id is a number
  @WithLease((id: string) => id)
  async other(_id: number): Promise<void> {}

  // @ts-expect-error the second parameter is a number
  @WithLease((_id: string, name: string) => name)
  async otherSecond(_id: string, _amount: number): Promise<void> {}

  // @ts-expect-error the method has no second parameter
  @WithLease((_id: string, name: string) => name)
  async more(_id: string): Promise<void> {}

  // @ts-expect-error the method's id may be absent
  @WithLease((id: string) => id)
  async optional(_id?: string): Promise<void> {}

  // @ts-expect-error a key is a string or several
  @WithLease((id: number) => id)
  async numberKey(_id: number): Promise<void> {}

  // @ts-expect-error a key is there when it is asked for: no promise of one
  @WithLease(async (id: string) => id)
  async asyncKey(_id: string): Promise<void> {}

  // @ts-expect-error a number is no key
  @WithLease(1)
  async number(): Promise<void> {}
}

export class Options {
  @WithLease('key', { ttl: '10s', wait: 250, onHeld: 'skip', onUnavailable: 'run' })
  async good(): Promise<void> {}

  @WithLease(undefined, { permits: 3 })
  async withoutKey(): Promise<void> {}

  // @ts-expect-error no unit
  @WithLease('key', { ttl: '10' })
  async noUnit(): Promise<void> {}

  // @ts-expect-error no such unit
  @WithLease('key', { ttl: '1w' })
  async unit(): Promise<void> {}

  // @ts-expect-error no such option
  @WithLease('key', { tll: '10s' })
  async misspelt(): Promise<void> {}

  // @ts-expect-error no such choice
  @WithLease('key', { onHeld: 'ignore' })
  async choice(): Promise<void> {}

  // @ts-expect-error 'run' is for a store that is unavailable, not for a key that is held
  @WithLease('key', { onHeld: 'run' })
  async runHeld(): Promise<void> {}

  // @ts-expect-error no such choice
  @LeaderOnly('group', { onNotLeader: 'run' })
  async leaderChoice(): Promise<void> {}
}

export const durations: Duration[] = [10, '250ms', '10s', '1.5s', '5m', '2h', '1d', Infinity];
export const noDurations: Duration[] = [
  // @ts-expect-error no unit
  '10',
  // @ts-expect-error a unit and nothing after it
  '10s ',
  // @ts-expect-error a number first
  's10',
  // @ts-expect-error words
  'ten seconds',
  // @ts-expect-error seconds are not spelt out
  '10seconds',
];

export const options: LeaseModuleOptions = {
  // @ts-expect-error no such option
  timeToLive: '10s',
};

export async function service(leases: LeaseService): Promise<void> {
  const lease: Lease = await leases.acquire('key', { ttl: '10s', permits: 2 });
  const maybe: Lease | null = await leases.tryAcquire(['a', 'b']);
  const six: number = await leases.run('key', (held) => held.fence + 1);
  const text: string = await leases.run('key', async () => 'text', { once: 'import' });
  void [lease, maybe, six, text];

  // @ts-expect-error null when it is held
  const certain: Lease = await leases.tryAcquire('key');
  // @ts-expect-error no such option
  await leases.acquire('key', { timeout: '1s' });
  // @ts-expect-error a choice of @WithLease, not of the service
  await leases.run('key', async () => {}, { onHeld: 'skip' });
  void certain;

  await using disposed = await leases.acquire('key');
  void disposed;
  // @ts-expect-error giving it back takes time
  using sync = await leases.acquire('key');
  void sync;
}

export async function leader(leadership: Leadership): Promise<void> {
  const perhaps: number | undefined = await leadership.run((lease) => lease.fence);
  // @ts-expect-error undefined when it does not lead
  const certain: number = await leadership.run((lease) => lease.fence);
  const lease: Lease | undefined = leadership.lease;
  void [perhaps, certain, lease];
}
