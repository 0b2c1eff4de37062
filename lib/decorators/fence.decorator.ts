import { PARAMETERS, parametersOf, type LeaseParameter } from './lease.metadata.js';

const parameter =
  (what: LeaseParameter['what']): ParameterDecorator =>
  (target, methodName, index) => {
    if (methodName === undefined) return;
    const known = parametersOf(target, methodName);
    Reflect.defineMetadata(PARAMETERS, [...known, { index, what }], target, methodName);
  };

/**
 * The fence of the lease the method runs under: hand it to whatever you write to.
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
