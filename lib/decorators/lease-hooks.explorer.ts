import { Inject, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { ElectionService } from '../election/election.service.js';
import { HOOK_FAILED, HOOK_NOT_STATIC } from '../lease.messages.js';
import { RESOLVED_OPTIONS_TOKEN, type ResolvedModuleOptions } from '../lease.module-definition.js';
import type { LeaseEvent } from '../lease/events.js';
import { LeaseEngine } from '../lease/lease-engine.js';
import { ClassMethods } from './class-methods.js';
import { hooksOf, type LeaseHook } from './lease.metadata.js';

interface HookedMethod extends LeaseHook {
  readonly label: string;
  readonly call: (event: LeaseEvent) => unknown;
}

/** Calls the methods under `@OnLeaseLost`, `@OnElected` and `@OnDeposed`, in the order of the events. */
@Injectable()
export class LeaseHooksExplorer implements OnModuleInit {
  readonly #logger = new Logger('Lease');

  constructor(
    private readonly classes: ClassMethods,
    private readonly engine: LeaseEngine,
    private readonly elections: ElectionService,
    @Inject(RESOLVED_OPTIONS_TOKEN) private readonly options: ResolvedModuleOptions,
  ) {}

  onModuleInit(): void {
    const hooks = [...this.#find()];
    // Nobody listens, nothing is made.
    if (hooks.some(({ on }) => on === 'lost')) {
      this.engine.events.lost.subscribe((event) => this.#tell(hooks, event, event.key));
    }
    if (hooks.some(({ on }) => on !== 'lost')) {
      this.engine.events.all.subscribe((event) => {
        if (event.type === 'elected' || event.type === 'deposed') {
          this.#tell(hooks, event, event.group);
        }
      });
    }
  }

  *#find(): Iterable<HookedMethod> {
    for (const { method, label, instance } of this.classes.all()) {
      for (const hook of hooksOf(method)) {
        if (instance === undefined) {
          this.#logger.warn(HOOK_NOT_STATIC(label));
          continue;
        }
        const of = hook.on === 'lost' ? hook.of : (hook.of ?? this.options.election.group);
        // To hear of an election is to run for it.
        if (hook.on !== 'lost') this.elections.leadership(of);
        const call = (event: LeaseEvent): unknown => (method as Function).call(instance, event);
        yield { on: hook.on, of, label, call };
      }
    }
  }

  /** A slow one delays nobody: each is called at once, none is waited for. */
  #tell(hooks: readonly HookedMethod[], event: LeaseEvent, subject: string): void {
    for (const { on, of, label, call } of hooks) {
      if (on !== event.type || (of !== undefined && of !== subject)) continue;
      const failed = (error: unknown): void => this.#logger.error(HOOK_FAILED(label), error);
      try {
        Promise.resolve(call(event)).catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  }
}
