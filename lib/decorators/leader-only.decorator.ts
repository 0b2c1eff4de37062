import type { GateReference } from '../fencing/fence-gates.js';
import { BAD_DECORATOR_OPTION, BAD_OPTION } from '../lease.messages.js';
import { LEADER_ONLY, type LeaderOnlyPlan } from './lease.metadata.js';
import { assertMethodKey } from './method-key.js';
import type { LeasedMethodDecorator } from './with-lease.decorator.js';
import { labelOf, wrapMethod } from './wrap-method.js';

/** @publicApi */
export interface LeaderOnlyOptions {
  /**
   * When this instance does not lead: throw 409 `NOT_LEADER`, or return `undefined`.
   * @default 'throw'; 'skip' under `@Cron`, `@Interval` and `@Timeout`
   */
  onNotLeader?: 'throw' | 'skip';
  /**
   * The gate that the method writes through, by `@Guarded()`: a `FenceGate`, or what a module provides it by. The fence
   * is that of the leadership.
   */
  fenced?: GateReference;
}

/**
 * Runs the method only on the instance that leads the group, with the leadership's fence and signal.
 *
 * @param group - by default the group of the module's `election` options
 *
 * @example
 * ```ts
 * @Interval(1000)
 * @LeaderOnly('outbox')
 * async dispatch(@CurrentLease() lease: Lease) {}
 * ```
 * @publicApi
 */
export function LeaderOnly(
  group?: string,
  options: LeaderOnlyOptions = {},
): LeasedMethodDecorator<[]> {
  return ((target: object, methodName: string | symbol, descriptor: PropertyDescriptor) => {
    const label = labelOf(target, methodName);
    if (group !== undefined) assertMethodKey(group, label, 'group');
    const { onNotLeader, fenced } = options;
    if (![undefined, 'throw', 'skip'].includes(onNotLeader)) {
      const reason = BAD_OPTION('onNotLeader', onNotLeader, 'one of throw, skip');
      throw new TypeError(BAD_DECORATOR_OPTION(label, reason));
    }
    const plan: LeaderOnlyPlan = { group, onNotLeader, fenced };
    wrapMethod('LeaderOnly', target, methodName, descriptor, (methods, call, work) =>
      methods.leaderOnly(plan, call, work),
    );
    Reflect.defineMetadata(LEADER_ONLY, plan, descriptor.value as object);
  }) as LeasedMethodDecorator<[]>;
}
