import { hostname } from 'node:os';
import { ConfigurableModuleBuilder, type ConfigurableModuleAsyncOptions } from '@nestjs/common';
import { resolveFencing, type ResolvedFencing } from './fencing/http/fencing-options.js';
import { BAD_OPTION, BAD_OPTIONS } from './lease.messages.js';
import type { ElectionOptions, LeaseModuleOptions, RenewInThreadOptions } from './lease.options.js';
import { parseDuration } from './lease/duration.js';
import { assertKey, assertNamespace } from './lease/key.js';
import { assertKnown } from './lease/resolve-options.js';
import type { LeaseStore } from './stores/lease-store.js';
import { MemoryLeaseStore } from './stores/memory/memory-lease-store.js';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<LeaseModuleOptions>({ moduleName: 'Lease' })
    .setClassMethodName('forRoot')
    .setExtras({ isGlobal: true }, (definition, { isGlobal }) => ({
      ...definition,
      global: isGlobal,
    }))
    .build();

/**
 * @publicApi
 */
export type LeaseModuleAsyncOptions = ConfigurableModuleAsyncOptions<LeaseModuleOptions> & {
  isGlobal?: boolean;
};

export const RESOLVED_OPTIONS_TOKEN = Symbol('LeaseModule options');

/** Module options as the library uses them: checked, in milliseconds, complete. */
export interface ResolvedModuleOptions {
  readonly store: LeaseStore;
  readonly namespace: string;
  readonly instance: string;
  readonly ttl: number;
  readonly wait: number;
  readonly shutdownGrace: number;
  readonly election: {
    readonly group: string;
    readonly ttl: number;
    readonly campaignWhen: () => boolean | Promise<boolean>;
  };
  readonly renewInThread: { readonly hungAfter: number } | undefined;
  readonly fencing: ResolvedFencing;
}

const KNOWN: Record<keyof LeaseModuleOptions, true> = {
  store: true,
  namespace: true,
  instance: true,
  ttl: true,
  wait: true,
  shutdownGrace: true,
  election: true,
  renewInThread: true,
  fencing: true,
};

const KNOWN_ELECTION: Record<keyof ElectionOptions, true> = {
  group: true,
  ttl: true,
  campaignWhen: true,
};

const STORE_METHODS = ['acquire', 'renew', 'release', 'inspect', 'list', 'close'] as const;

/** Checks what the application was configured with, at its start. */
export function resolveModuleOptions(options: LeaseModuleOptions = {}): ResolvedModuleOptions {
  if (typeof options !== 'object' || options === null) throw new TypeError(BAD_OPTIONS(options));
  assertKnown({ ...options, isGlobal: undefined }, { ...KNOWN, isGlobal: true });
  const {
    store = new MemoryLeaseStore(),
    namespace = 'lease',
    instance = `${hostname()}:${process.pid}`,
    election = {},
  } = options;
  assertStore(store);
  assertNamespace(namespace);
  if (typeof instance !== 'string' || instance === '' || instance.length > 200) {
    throw new TypeError(BAD_OPTION('instance', instance, 'a string of 1 to 200 characters'));
  }
  if (typeof election !== 'object' || election === null) {
    throw new TypeError(BAD_OPTION('election', election, 'an object'));
  }
  assertKnown(election, KNOWN_ELECTION);
  const { group = 'default', campaignWhen = () => true } = election;
  assertKey(group, 'group');
  if (typeof campaignWhen !== 'function') {
    throw new TypeError(BAD_OPTION('election.campaignWhen', campaignWhen, 'a function'));
  }
  const { minTtl: min, maxTtl: max } = store.limits;
  const ttl = parseDuration(options.ttl ?? '10s', 'ttl', { min, max });
  return {
    store,
    namespace,
    instance,
    ttl,
    wait: parseDuration(options.wait ?? 0, 'wait', { max: Infinity }),
    shutdownGrace: parseDuration(options.shutdownGrace ?? '10s', 'shutdownGrace'),
    election: {
      group,
      ttl: parseDuration(election.ttl ?? ttl, 'election.ttl', { min, max }),
      campaignWhen,
    },
    renewInThread: resolveThread(options.renewInThread),
    fencing: resolveFencing(options.fencing),
  };
}

function resolveThread(
  option: boolean | RenewInThreadOptions = false,
): { readonly hungAfter: number } | undefined {
  if (option === false) return undefined;
  if (option !== true && (typeof option !== 'object' || option === null)) {
    throw new TypeError(BAD_OPTION('renewInThread', option, 'true, false or an object'));
  }
  const { hungAfter = '30s', ...others } = option === true ? {} : option;
  assertKnown(others, { hungAfter: true });
  return { hungAfter: parseDuration(hungAfter, 'renewInThread.hungAfter', { min: 1_000 }) };
}

function assertStore(store: unknown): asserts store is LeaseStore {
  const candidate = store as Partial<LeaseStore> | null;
  const complete =
    typeof candidate === 'object' &&
    candidate !== null &&
    typeof candidate.limits === 'object' &&
    STORE_METHODS.every((method) => typeof candidate[method] === 'function');
  if (!complete) {
    throw new TypeError(
      BAD_OPTION('store', store, 'a LeaseStore, such as new RedisLeaseStore(url)'),
    );
  }
}
