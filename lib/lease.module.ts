import { Module, type DynamicModule } from '@nestjs/common';
import { APP_INTERCEPTOR, DiscoveryModule } from '@nestjs/core';
import { ClassMethods } from './decorators/class-methods.js';
import { GuardedCalls } from './decorators/guarded-calls.js';
import { LeasedMethods } from './decorators/leased-methods.js';
import { LeaseHooksExplorer } from './decorators/lease-hooks.explorer.js';
import { LeasedMethodsExplorer } from './decorators/leased-methods.explorer.js';
import { ScheduledJobs } from './decorators/scheduled-jobs.js';
import { ElectionService } from './election/election.service.js';
import { FenceGates } from './fencing/fence-gates.js';
import { FencedCalls } from './http/fenced-calls.js';
import { RetryAfterInterceptor } from './http/retry-after.interceptor.js';
import { LeaseLifecycle } from './lease.lifecycle.js';
import {
  ConfigurableModuleClass,
  MODULE_OPTIONS_TOKEN,
  RESOLVED_OPTIONS_TOKEN,
  resolveModuleOptions,
  type LeaseModuleAsyncOptions,
  type ResolvedModuleOptions,
} from './lease.module-definition.js';
import type { LeaseModuleOptions } from './lease.options.js';
import { LeaseService } from './lease.service.js';
import { LeaseEngine } from './lease/lease-engine.js';

/**
 * Leases for the application.
 *
 * @example
 * ```ts
 * @Module({
 *   imports: [
 *     ScheduleModule.forRoot(),
 *     LeaseModule.forRoot({ store: new RedisLeaseStore(process.env.REDIS_URL) }),
 *   ],
 * })
 * export class AppModule {}
 * ```
 * @publicApi
 */
@Module({
  imports: [DiscoveryModule],
  providers: [
    {
      provide: RESOLVED_OPTIONS_TOKEN,
      useFactory: resolveModuleOptions,
      inject: [MODULE_OPTIONS_TOKEN],
    },
    {
      provide: LeaseEngine,
      useFactory: (options: ResolvedModuleOptions) => new LeaseEngine(options),
      inject: [RESOLVED_OPTIONS_TOKEN],
    },
    LeaseService,
    ElectionService,
    ScheduledJobs,
    LeasedMethods,
    ClassMethods,
    FenceGates,
    GuardedCalls,
    FencedCalls,
    LeasedMethodsExplorer,
    LeaseHooksExplorer,
    LeaseLifecycle,
    { provide: APP_INTERCEPTOR, useClass: RetryAfterInterceptor },
  ],
  exports: [LeaseService, ElectionService, LeasedMethods, FencedCalls],
})
export class LeaseModule extends ConfigurableModuleClass {
  static override forRoot(
    options: LeaseModuleOptions & { isGlobal?: boolean } = {},
  ): DynamicModule {
    return super.forRoot(options);
  }

  static override forRootAsync(options: LeaseModuleAsyncOptions): DynamicModule {
    return super.forRootAsync(options);
  }
}
