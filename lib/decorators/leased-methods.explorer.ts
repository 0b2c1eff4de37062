import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ElectionService } from '../election/election.service.js';
import {
  BAD_DECORATOR_OPTION,
  GUARDED_WITHOUT_GATE,
  PARAMETER_WITHOUT_LEASE,
  SAME_DEFAULT_KEY,
} from '../lease.messages.js';
import { LeaseEngine } from '../lease/lease-engine.js';
import { ClassMethods, type ClassMethod } from './class-methods.js';
import { FenceGates } from '../fencing/fence-gates.js';
import { fillsFence, leaderOnlyPlanOf, parametersOf, withLeasePlanOf } from './lease.metadata.js';

/** Looks at every decorated method at start, so that what is wrong is told then and elections begin. */
@Injectable()
export class LeasedMethodsExplorer implements OnModuleInit {
  readonly #defaultKeys = new Map<string, object>();

  constructor(
    private readonly classes: ClassMethods,
    private readonly engine: LeaseEngine,
    private readonly elections: ElectionService,
    private readonly gates: FenceGates,
  ) {}

  onModuleInit(): void {
    for (const one of this.classes.all()) {
      this.#checkParameters(one);
      this.#checkWithLease(one);
      const leaderOnly = leaderOnlyPlanOf(one.method);
      if (leaderOnly) this.elections.leadership(leaderOnly.group);
    }
  }

  #checkParameters({ prototype, name, method, label }: ClassMethod): void {
    const parameters = parametersOf(declarerOf(prototype, name), name);
    const plan = withLeasePlanOf(method) ?? leaderOnlyPlanOf(method);
    if (plan?.fenced !== undefined) this.gates.resolve(plan.fenced, label);
    for (const { what } of parameters) {
      if (what === 'Guarded' && plan !== undefined && plan.fenced === undefined) {
        throw new TypeError(GUARDED_WITHOUT_GATE(label));
      }
      if (plan !== undefined || (what === 'Fence' && fillsFence(method))) continue;
      throw new TypeError(PARAMETER_WITHOUT_LEASE(what, label));
    }
  }

  #checkWithLease({ prototype, method, label }: ClassMethod): void {
    const plan = withLeasePlanOf(method);
    if (plan === undefined) return;
    try {
      this.engine.resolve(plan.lease);
    } catch (error) {
      const Kind = error instanceof RangeError ? RangeError : TypeError;
      throw new Kind(BAD_DECORATOR_OPTION(label, (error as Error).message));
    }
    if (plan.key !== undefined) return;
    const other = this.#defaultKeys.get(label);
    if (other !== undefined && other !== prototype) throw new TypeError(SAME_DEFAULT_KEY(label));
    this.#defaultKeys.set(label, prototype);
  }
}

/** The prototype that a method is declared on: the class's own, or one that it inherits from. */
function declarerOf(prototype: object, name: string): object {
  if (Object.hasOwn(prototype, name)) return prototype;
  return declarerOf(Object.getPrototypeOf(prototype) as object, name);
}
