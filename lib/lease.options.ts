import type { FencingOptions } from './fencing/http/fencing-options.js';
import type { Duration } from './lease/duration.js';
import type { LeaseStore } from './stores/lease-store.js';

/**
 * How to take a lease. Every field may be left out.
 *
 * @publicApi
 */
export interface LeaseOptions {
  /**
   * How long the store keeps the lease without hearing from its holder. A crash costs that much time; a
   * renewal happens every third of it.
   * @default the module's `ttl`, '10s'
   */
  ttl?: Duration;
  /**
   * How long to wait for a key that is held. `Infinity` waits until the signal aborts.
   * @default the module's `wait`, 0
   */
  wait?: Duration;
  /** Ends the waiting; the call rejects with the signal's reason. */
  signal?: AbortSignal;
  /**
   * Whether the lease renews itself while it is held.
   * @default true
   */
  renew?: boolean;
  /** The key stays taken for at least this long after it was granted, even when released sooner. */
  minHold?: Duration;
  /** The lease ends after this long, renewed or not: a handler that hangs cannot hold it for ever. */
  maxHold?: Duration;
  /**
   * How many may hold the key at once.
   * @default 1
   */
  permits?: number;
  /**
   * Names a unit of work: once a `run` of it has succeeded, claims for it are refused as done. An efficiency
   * measure ("don't do it twice"), remembered by the store for `remember`.
   */
  once?: string;
  /**
   * How long `once` is remembered.
   * @default '24h'
   */
  remember?: Duration;
  /**
   * Whether `run()` and decorated methods wait for the store's answer to the release. Without it they go on when the
   * release has been sent; what came of it is in the `released` event. With it a release that finds the lease gone is
   * thrown as `LeaseLostException`.
   * @default false, true with `once`
   */
  awaitRelease?: boolean;
}

/**
 * @publicApi
 */
export interface ElectionOptions {
  /**
   * The group that `@LeaderOnly()` and `leadership()` mean when they name none.
   * @default 'default'
   */
  group?: string;
  /**
   * How long a crashed leader stays unreplaced.
   * @default the module's `ttl`
   */
  ttl?: Duration;
  /**
   * Asked before every try to be elected and while leading; an instance that says no abstains, or steps down. An
   * error, or no answer within a third of the ttl, is a no.
   */
  campaignWhen?: () => boolean | Promise<boolean>;
}

/**
 * @publicApi
 */
export interface RenewInThreadOptions {
  /**
   * For how long the event loop may stand still before its leases are renewed no more: a process that hangs loses
   * them after this and a ttl.
   * @default '30s'
   */
  hungAfter?: Duration;
}

/**
 * @publicApi
 */
export interface LeaseModuleOptions {
  /**
   * Where leases are kept.
   * @default `new MemoryLeaseStore()`: protects this process only, and says so in the log
   */
  store?: LeaseStore;
  /**
   * Keeps applications that share a store apart: letters, digits and `_ . : -`.
   * @default 'lease'
   */
  namespace?: string;
  /**
   * Who this process is, for people who look at a lease.
   * @default `${hostname}:${pid}`
   */
  instance?: string;
  /** @default '10s' */
  ttl?: Duration;
  /** @default 0 */
  wait?: Duration;
  /**
   * How long a shutdown lets leased work in flight finish before it aborts its signal, and how long it then
   * waits for that work to stop.
   * @default '10s'
   */
  shutdownGrace?: Duration;
  election?: ElectionOptions;
  /**
   * Renews leases from a thread of its own, with a connection of its own, so that a blocked event loop does not lose
   * them. The store must be able to (`RedisLeaseStore` is).
   * @default false
   */
  renewInThread?: boolean | RenewInThreadOptions;
  /** Fences that go to other services with a call, and those that come with one. */
  fencing?: FencingOptions;
}
