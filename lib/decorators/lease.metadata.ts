import type { GateReference } from '../fencing/fence-gates.js';
import type { FencedPlan } from './fenced.decorator.js';
import type { WithLeasePlan } from './with-lease.decorator.js';

/** What the decorators leave on methods, for the wrapper and the explorers. */
export const WITH_LEASE = 'nestjs-lease:with-lease';
export const LEADER_ONLY = 'nestjs-lease:leader-only';
export const FENCED = 'nestjs-lease:fenced';
export const FILLS_FENCE = 'nestjs-lease:fills-fence';
export const PARAMETERS = 'nestjs-lease:parameters';
export const HOOKS = 'nestjs-lease:hooks';

export interface LeaderOnlyPlan {
  readonly group: string | undefined;
  readonly onNotLeader: 'throw' | 'skip' | undefined;
  readonly fenced: GateReference | undefined;
}

/** A parameter that the wrapper fills. */
export interface LeaseParameter {
  readonly index: number;
  readonly what: 'Fence' | 'CurrentLease' | 'Guarded';
}

export interface LeaseHook {
  readonly on: 'lost' | 'elected' | 'deposed';
  /** The key or group it is for. */
  readonly of: string | undefined;
}

export const withLeasePlanOf = (method: object): WithLeasePlan | undefined =>
  Reflect.getOwnMetadata(WITH_LEASE, method) as WithLeasePlan | undefined;

export const leaderOnlyPlanOf = (method: object): LeaderOnlyPlan | undefined =>
  Reflect.getOwnMetadata(LEADER_ONLY, method) as LeaderOnlyPlan | undefined;

export const fencedPlanOf = (method: object): FencedPlan | undefined =>
  Reflect.getOwnMetadata(FENCED, method) as FencedPlan | undefined;

/** Whether `@Fence()` has what the caller sent. */
export const fillsFence = (method: object): boolean => Reflect.hasOwnMetadata(FILLS_FENCE, method);

/** Of the method that is declared on this very prototype. */
export const parametersOf = (
  prototype: object,
  method: string | symbol,
): readonly LeaseParameter[] =>
  (Reflect.getOwnMetadata(PARAMETERS, prototype, method) as LeaseParameter[] | undefined) ?? [];

export const hooksOf = (method: object): readonly LeaseHook[] =>
  (Reflect.getOwnMetadata(HOOKS, method) as LeaseHook[] | undefined) ?? [];
