export { LeaseModule } from './lease.module.js';
export { type LeaseModuleAsyncOptions } from './lease.module-definition.js';
export {
  type ElectionOptions,
  type LeaseModuleOptions,
  type LeaseOptions,
  type RenewInThreadOptions,
} from './lease.options.js';
export { LeaseService } from './lease.service.js';
export { Lease } from './lease/lease.js';
export { type KeyFence } from './lease/lease-scope.js';
export { type Clock } from './lease/clock.js';
export { type Duration } from './lease/duration.js';
export {
  type DeposedEvent,
  type ElectedEvent,
  type LeaseAcquiredEvent,
  type LeaseEvent,
  type LeaseEventBase,
  type LeaseLaggingEvent,
  type LeaseLostEvent,
  type LeaseRefusedEvent,
  type LeaseReleasedEvent,
  type LeaseRenewalFailedEvent,
  type LeaseRenewedEvent,
  type LossReason,
  type RefusalReason,
  type ReleaseOutcome,
  type StaleFenceEvent,
} from './lease/events.js';

export { ElectionService } from './election/election.service.js';
export { Leadership } from './election/leadership.js';

export { type Admitted } from './fencing/admitted.js';
export { FenceGate, type GuardedGate, type Mark, type StaleFence } from './fencing/fence-gate.js';
export { type GateReference } from './fencing/fence-gates.js';
export { type FenceSource } from './fencing/fence-source.js';
export {
  fencedFetch,
  fenceHttp,
  type AxiosLike,
  type FencedClientOptions,
} from './fencing/http/fenced-clients.js';
export {
  fenceHeaders,
  fencePayload,
  type FenceHeaderOptions,
  type SentFence,
} from './fencing/http/fence-headers.js';
export { type FencingOptions } from './fencing/http/fencing-options.js';
export { MemoryFenceGate } from './fencing/memory-fence-gate.js';
export { fenceColumn, type FenceColumn } from './fencing/sql/fence-column.js';

export { CurrentLease, Fence, Guarded } from './decorators/fence.decorator.js';
export { Fenced, type FencedOptions } from './decorators/fenced.decorator.js';
export { LeaderOnly, type LeaderOnlyOptions } from './decorators/leader-only.decorator.js';
export { OnDeposed, OnElected, OnLeaseLost } from './decorators/lease-hooks.decorator.js';
export {
  WithLease,
  type Leasable,
  type LeasedMethodDecorator,
  type LeaseKey,
  type WithLeaseOptions,
} from './decorators/with-lease.decorator.js';

export { BadFenceException } from './exceptions/bad-fence.exception.js';
export { FenceGateUnavailableException } from './exceptions/fence-gate-unavailable.exception.js';
export { FenceRequiredException } from './exceptions/fence-required.exception.js';
export { LeaseException } from './exceptions/lease.exception.js';
export { LeaseDoneException } from './exceptions/lease-done.exception.js';
export { LeaseHeldException } from './exceptions/lease-held.exception.js';
export { LeaseLostException } from './exceptions/lease-lost.exception.js';
export { LeaseUnavailableException } from './exceptions/lease-unavailable.exception.js';
export { NotLeaderException } from './exceptions/not-leader.exception.js';
export { StaleFenceException } from './exceptions/stale-fence.exception.js';
export { UntrustedFenceException } from './exceptions/untrusted-fence.exception.js';

export { MemoryLeaseStore } from './stores/memory/memory-lease-store.js';
export {
  type Claim,
  type Grant,
  type Hold,
  type LeaseHolder,
  type LeaseRecord,
  type LeaseStore,
  type Refusal,
  type ReleaseHow,
  type RenewOutcome,
  type StoreInThread,
} from './stores/lease-store.js';
