import { assertKey } from '../lease/key.js';
import { HOOKS, hooksOf, type LeaseHook } from './lease.metadata.js';

const hook =
  (on: LeaseHook['on'], of: string | undefined): MethodDecorator =>
  (_target, _methodName, descriptor) => {
    if (of !== undefined) assertKey(of, on === 'lost' ? 'key' : 'group');
    const method = descriptor.value as object;
    Reflect.defineMetadata(HOOKS, [...hooksOf(method), { on, of }], method);
  };

/**
 * Calls the method with a `LeaseLostEvent` when a lease of this process is lost.
 *
 * @param key - only for this key; by default for every one
 * @publicApi
 */
export const OnLeaseLost = (key?: string): MethodDecorator => hook('lost', key);

/**
 * Calls the method with an `ElectedEvent` when this instance is elected.
 *
 * @param group - by default the group of the module's `election` options
 * @publicApi
 */
export const OnElected = (group?: string): MethodDecorator => hook('elected', group);

/**
 * Calls the method with a `DeposedEvent` when this instance stops leading, for whatever reason.
 *
 * @param group - by default the group of the module's `election` options
 * @publicApi
 */
export const OnDeposed = (group?: string): MethodDecorator => hook('deposed', group);
