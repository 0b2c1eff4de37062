import type { Observable } from 'rxjs';
import type { GateReference } from '../fencing/fence-gates.js';
import { BAD_DECORATOR_OPTION, BAD_OPTION, FENCED_RUN, UNKNOWN_OPTION } from '../lease.messages.js';
import type { LeaseOptions } from '../lease.options.js';
import { assertMethodKey } from './method-key.js';
import { LEASE_OPTIONS } from '../lease/resolve-options.js';
import { WITH_LEASE } from './lease.metadata.js';
import { labelOf, wrapMethod } from './wrap-method.js';

/** What a method under a lease may return. A synchronous one cannot take a lease. @publicApi */
export type Leasable =
  Promise<unknown> | Observable<unknown> | AsyncGenerator<unknown, unknown, never>;

/** @publicApi */
export type LeaseKey<Args extends unknown[] = never> =
  string | readonly string[] | ((...args: Args) => string | readonly string[]);

/** @publicApi */
export interface WithLeaseOptions extends LeaseOptions {
  /**
   * When somebody else holds the key, or the work is done already: throw 409, or return `undefined`.
   * @default 'throw'; 'skip' under `@Cron`, `@Interval` and `@Timeout`
   */
  onHeld?: 'throw' | 'skip';
  /**
   * When the store cannot say: throw 503, return `undefined`, or run without a lease. The last is for work that is
   * merely wasteful to do twice; `@Fence()` is `undefined` then.
   * @default 'throw'
   */
  onUnavailable?: 'throw' | 'skip' | 'run';
  /**
   * Under `@Cron`: once per tick in the whole fleet, by its scheduled time. Under `@Interval`: once per interval.
   * `false` leaves only the lease: one at a time.
   * @default true, unless `once`, `minHold` or `permits` say otherwise
   */
  oncePerTick?: boolean;
  /**
   * The gate that the method writes through: a `FenceGate`, or what a module provides it by. The method is given it, with
   * the fence of the lease in it, by `@Guarded()`.
   */
  fenced?: GateReference;
}

/** What `@WithLease` was told. */
export interface WithLeasePlan {
  readonly key: string | readonly string[] | ((...args: unknown[]) => unknown) | undefined;
  readonly lease: LeaseOptions;
  readonly onHeld: 'throw' | 'skip' | undefined;
  readonly onUnavailable: 'throw' | 'skip' | 'run';
  readonly oncePerTick: boolean;
  readonly fenced: GateReference | undefined;
}

/** Fits methods whose parameters the key function accepts and whose result can be waited for. @publicApi */
export type LeasedMethodDecorator<Args extends unknown[]> = <
  T extends (...args: never[]) => Leasable,
>(
  target: object,
  methodName: string | symbol,
  descriptor: TypedPropertyDescriptor<T> &
    (((...args: Args) => unknown) extends (...args: Parameters<T>) => unknown ? unknown : never),
) => void;

/**
 * Runs the method under a lease: acquires it, renews it while the method runs, gives it back when the method's
 * result is over (a promise, an Observable, a stream, an async generator). A method that returns an Observable to
 * your own code must say so in its signature, with `Observable` imported as a value; else its callers get a promise
 * of one, which is all the same to Nest.
 *
 * @param key - the key, several of them, or a function of the method's own arguments; by default
 * `ClassName.methodName`
 *
 * @example
 * ```ts
 * @Cron('0 * * * *')
 * @WithLease()
 * async closeBooks(@Fence() fence: number) {}
 *
 * @Post(':id/pay')
 * @WithLease((id: string) => `order:${id}`)
 * async pay(@Param('id') id: string) {}
 * ```
 * @publicApi
 */
export function WithLease<Args extends unknown[] = []>(
  key?: LeaseKey<Args>,
  options: WithLeaseOptions = {},
): LeasedMethodDecorator<Args> {
  return ((target: object, methodName: string | symbol, descriptor: PropertyDescriptor) => {
    const plan = toPlan(key as WithLeasePlan['key'], options, labelOf(target, methodName));
    wrapMethod('WithLease', target, methodName, descriptor, (methods, call, work) =>
      methods.withLease(plan, call, work),
    );
    Reflect.defineMetadata(WITH_LEASE, plan, descriptor.value as object);
  }) as LeasedMethodDecorator<Args>;
}

const KNOWN: Record<keyof WithLeaseOptions, true> = {
  ...LEASE_OPTIONS,
  onHeld: true,
  onUnavailable: true,
  oncePerTick: true,
  fenced: true,
};

function toPlan(
  key: WithLeasePlan['key'],
  options: WithLeaseOptions,
  method: string,
): WithLeasePlan {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(BAD_DECORATOR_OPTION(method, BAD_OPTION('options', options, 'an object')));
  }
  if (typeof key !== 'function' && key !== undefined) {
    assertMethodKey(key, method);
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(KNOWN, name)) continue;
    throw new TypeError(BAD_DECORATOR_OPTION(method, UNKNOWN_OPTION(name, Object.keys(KNOWN))));
  }
  const { onHeld, onUnavailable = 'throw', oncePerTick = true, fenced, ...lease } = options;
  const oneOf = (name: string, value: unknown, choices: readonly unknown[]): void => {
    if (choices.includes(value)) return;
    const expected = choices.filter((choice) => choice !== undefined).join(', ');
    throw new TypeError(
      BAD_DECORATOR_OPTION(method, BAD_OPTION(name, value, `one of ${expected}`)),
    );
  };
  oneOf('onHeld', onHeld, ['throw', 'skip', undefined]);
  oneOf('onUnavailable', onUnavailable, ['throw', 'skip', 'run']);
  oneOf('oncePerTick', oncePerTick, [true, false]);
  if (fenced !== undefined && onUnavailable === 'run') {
    throw new TypeError(BAD_DECORATOR_OPTION(method, FENCED_RUN()));
  }
  // Frozen: what can never change is looked at once.
  return { key, lease: Object.freeze(lease), onHeld, onUnavailable, oncePerTick, fenced };
}
