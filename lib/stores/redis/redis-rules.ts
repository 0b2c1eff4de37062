import { parseDuration, type Duration } from '../../lease/duration.js';
import { assertKnown } from '../../lease/resolve-options.js';
import { BAD_REPLICAS, QUARANTINE_IN_CLUSTER } from '../../lease.messages.js';
import { ms } from './redis-replies.js';

/**
 * @publicApi
 */
export interface RedisLeaseStoreOptions {
  /**
   * How long the fence of a key is remembered after its last grant: the longest step back of the server's clock
   * that fences survive. What is left of a key in Redis goes after this time, or up to 17 minutes later; never less
   * than ten of its ttls.
   * @default '24h'
   */
  fenceRetention?: Duration;
  /**
   * A grant and a renewal count only when so many replicas have them. Else the claim fails as unavailable and is
   * given back, and the renewal is tried again while there is trust.
   * @default 0
   */
  waitForReplicas?: number;
  /**
   * For how long their word is waited for, at most a second.
   * @default '100ms'
   */
  replicaTimeout?: Duration;
  /**
   * A server that has lost its data, was restarted, or took over from another grants nothing for so long: as long as
   * the longest ttl that is in use, so that every lease that it may not know of has ended. `true` is a minute. The
   * same for all processes. Not for Redis Cluster.
   * @default false
   */
  quarantine?: boolean | Duration;
}

/** How a store is to behave, in the terms of its servers. */
export interface RedisRules {
  /** Milliseconds for which a fence is remembered. */
  readonly retention: number;
  /** Milliseconds for which a server that forgot, or is another than before, grants nothing. */
  readonly quarantine: number | undefined;
  /** How many replicas must have a grant, or a renewal, and for how many milliseconds that is waited for. */
  readonly replicas: { readonly count: number; readonly timeout: number } | undefined;
  readonly isInCluster: boolean;
}

const KNOWN: Record<keyof RedisLeaseStoreOptions, true> = {
  fenceRetention: true,
  waitForReplicas: true,
  replicaTimeout: true,
  quarantine: true,
};

export function rulesOf(options: RedisLeaseStoreOptions, isInCluster: boolean): RedisRules {
  assertKnown(options, KNOWN);
  const { fenceRetention = '24h', waitForReplicas = 0, replicaTimeout = '100ms' } = options;
  const { quarantine = false } = options;
  if (!(Number.isSafeInteger(waitForReplicas) && waitForReplicas >= 0)) {
    throw new RangeError(BAD_REPLICAS(waitForReplicas));
  }
  const timeout = ms(parseDuration(replicaTimeout, 'replicaTimeout', { min: 1, max: 1_000 }));
  if (quarantine !== false && isInCluster) throw new TypeError(QUARANTINE_IN_CLUSTER());
  return {
    retention: ms(parseDuration(fenceRetention, 'fenceRetention', { min: 1_000 })),
    quarantine: quarantine === false ? undefined : quarantineOf(quarantine),
    replicas: waitForReplicas === 0 ? undefined : { count: waitForReplicas, timeout },
    isInCluster,
  };
}

const quarantineOf = (value: true | Duration): number =>
  ms(parseDuration(value === true ? '1m' : value, 'quarantine', { min: 1 }));
