import { PARAMETERS, parametersOf, type LeaseParameter } from './lease.metadata.js';

const parameter =
  (what: LeaseParameter['what']): ParameterDecorator =>
  (target, methodName, index) => {
    if (methodName === undefined) return;
    const known = parametersOf(target, methodName);
    Reflect.defineMetadata(PARAMETERS, [...known, { index, what }], target, methodName);
  };

/**
 * The fence of the lease the method runs under: hand it to whatever you write to. In a method that is `@Fenced()` and
 * under no lease of its own, the fence that its caller sent.
 *
 * @example
 * ```ts
 * @WithLease('books')
 * async closeBooks(@Fence() fence: number) {}
 * ```
 * @publicApi
 */
export const Fence = (): ParameterDecorator => parameter('Fence');

/**
 * The lease the method runs under: its signal, its fence, what is left of it.
 *
 * @publicApi
 */
export const CurrentLease = (): ParameterDecorator => parameter('CurrentLease');

/**
 * The gate that the method is `fenced` by, with the fence of its lease in it: what is written through it is written by
 * the owner, or not at all.
 *
 * @example
 * ```ts
 * @WithLease('prices', { fenced: PRICES_GATE })
 * async refresh(@Guarded() prices: GuardedRedis) {
 *   await prices.set('prices:eur', await this.load());
 * }
 * ```
 * @publicApi
 */
export const Guarded = (): ParameterDecorator => parameter('Guarded');
