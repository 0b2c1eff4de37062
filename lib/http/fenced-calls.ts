import {
  HttpException,
  Inject,
  Injectable,
  type ExecutionContext,
  type OnModuleInit,
} from '@nestjs/common';
import { ClassMethods } from '../decorators/class-methods.js';
import type { FencedPlan } from '../decorators/fenced.decorator.js';
import { fencedPlanOf } from '../decorators/lease.metadata.js';
import { assertMethodKey } from '../decorators/method-key.js';
import { BadFenceException } from '../exceptions/bad-fence.exception.js';
import { FenceGateUnavailableException } from '../exceptions/fence-gate-unavailable.exception.js';
import { FenceRequiredException } from '../exceptions/fence-required.exception.js';
import { StaleFenceException } from '../exceptions/stale-fence.exception.js';
import type { FenceGate } from '../fencing/fence-gate.js';
import { FenceGates } from '../fencing/fence-gates.js';
import { signWith, type ResolvedFencing } from '../fencing/http/fencing-options.js';
import { fenceOfHeaders, fenceOfMessage, provenFence } from '../fencing/http/incoming-fence.js';
import {
  FENCE_OF_OTHER_KEY,
  FENCE_REQUIRED,
  FENCED_WITHOUT_GATE,
  FENCED_WITHOUT_SECRET,
  GATE_SILENT,
  KEY_FUNCTION_THREW,
} from '../lease.messages.js';
import { RESOLVED_OPTIONS_TOKEN, type ResolvedModuleOptions } from '../lease.module-definition.js';
import { LeaseEngine } from '../lease/lease-engine.js';
import type { KeyFence } from '../lease/lease-scope.js';

/** Runs something in the async context of the call. */
export type Inside = <T>(work: () => T) => T;

/** Calls that come to this application under leases of others. */
@Injectable()
export class FencedCalls implements OnModuleInit {
  readonly #fencing: ResolvedFencing;
  /** A controller and its method may both be decorated. */
  readonly #entered = new WeakSet<ExecutionContext>();
  /** Methods whose gate did not answer the last time: said once, and again when it has answered meanwhile. */
  readonly #silentGates = new Set<string>();

  constructor(
    private readonly engine: LeaseEngine,
    private readonly gates: FenceGates,
    private readonly classes: ClassMethods,
    @Inject(RESOLVED_OPTIONS_TOKEN) options: ResolvedModuleOptions,
  ) {
    this.#fencing = options.fencing;
    signWith(engine.events, this.#fencing.secrets);
    if (this.#fencing.gate !== undefined) gates.adopt(this.#fencing.gate);
  }

  /** What could never work is told at start. */
  onModuleInit(): void {
    for (const { prototype, method, label } of this.classes.all()) {
      const plan = fencedPlanOf(method) ?? fencedPlanOf(prototype.constructor);
      if (plan === undefined) continue;
      this.#gateOf(plan, label);
      if (!plan.internal && this.#fencing.secrets.length === 0) {
        throw new TypeError(FENCED_WITHOUT_SECRET(label));
      }
    }
  }

  /** Judges the fence of a call; the context to go on in, or nothing when it may go on without a fence. */
  async enter(context: ExecutionContext): Promise<Inside | undefined> {
    if (this.#entered.has(context)) return undefined;
    this.#entered.add(context);
    const method = context.getHandler();
    const plan = fencedPlanOf(method) ?? fencedPlanOf(context.getClass())!;
    const label = `${context.getClass().name}.${method.name}`;
    const request = requestOf(context);
    const expected = expectedKey(plan, request, label);
    const given =
      context.getType() === 'http'
        ? fenceOfHeaders((request as { headers?: Record<string, unknown> }).headers ?? {})
        : fenceOfMessage(request);
    if (given === undefined) {
      if (!plan.required) return undefined;
      throw new FenceRequiredException(FENCE_REQUIRED(), expected);
    }
    const { ahead, secrets } = this.#fencing;
    const incoming = provenFence(given, { ahead, secrets: plan.internal ? undefined : secrets });
    if (expected !== undefined && incoming.key !== expected) {
      throw new BadFenceException(FENCE_OF_OTHER_KEY(incoming.key, expected), expected);
    }
    const inside: Inside = (work) => this.engine.scope.runUnder(incoming, work);
    await inside(() => this.#admit(this.#gateOf(plan, label), incoming, label));
    return inside;
  }

  async #admit(gate: FenceGate | undefined, incoming: KeyFence, label: string): Promise<void> {
    try {
      await gate?.admit(incoming.key, incoming);
      this.#silentGates.delete(label);
    } catch (error) {
      if (error instanceof StaleFenceException) throw error;
      if (!this.#silentGates.has(label)) {
        this.#silentGates.add(label);
        this.engine.events.warn(GATE_SILENT(label, (error as Error).message));
      }
      throw new FenceGateUnavailableException(incoming.key, error);
    }
  }

  #gateOf(plan: FencedPlan, label: string): FenceGate | undefined {
    if (plan.gate === false) return undefined;
    const gate = plan.gate ?? this.#fencing.gate;
    if (gate === undefined) throw new TypeError(FENCED_WITHOUT_GATE(label));
    return this.gates.resolve(gate, label);
  }
}

function requestOf(context: ExecutionContext): unknown {
  switch (context.getType()) {
    case 'http':
      return context.switchToHttp().getRequest();
    case 'ws':
      return context.switchToWs().getData();
    default:
      return context.switchToRpc().getData();
  }
}

function expectedKey({ key }: FencedPlan, request: unknown, label: string): string | undefined {
  if (typeof key !== 'function') return key;
  let expected: unknown;
  try {
    expected = key(request);
  } catch (error) {
    // A deliberate answer to the client is none of ours.
    if (error instanceof HttpException) throw error;
    throw new Error(KEY_FUNCTION_THREW(label), { cause: error });
  }
  assertMethodKey(expected, label);
  return expected as string;
}
