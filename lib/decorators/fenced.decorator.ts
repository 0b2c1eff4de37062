import { UseInterceptors } from '@nestjs/common';
import type { GateReference } from '../fencing/fence-gates.js';
import { FencedInterceptor } from '../http/fenced.interceptor.js';
import { BAD_DECORATOR_OPTION, BAD_OPTION } from '../lease.messages.js';
import { bearersOfContext } from '../lease/lease-scope.js';
import { assertKnown } from '../lease/resolve-options.js';
import { FENCED, FILLS_FENCE, parametersOf } from './lease.metadata.js';
import { assertMethodKey } from './method-key.js';
import { dress, labelOf } from './wrap-method.js';

/**
 * @publicApi
 */
export interface FencedOptions<Request = never> {
  /**
   * The lease that the caller must hold: its key, or a function of the request (of the data, for a message). Without it
   * the fence of any key passes, each compared with those of its own key only.
   */
  key?: string | ((request: Request) => string);
  /**
   * Where fences are remembered, or what a module provides it by. `false`: nowhere; the handler asks a gate itself, in the
   * transaction that writes.
   * @default the module's `fencing.gate`
   */
  gate?: GateReference | false;
  /**
   * Only services that are trusted can reach it: fences need no signature.
   * @default false
   */
  internal?: boolean;
  /**
   * Whether a call without a fence is refused with 428.
   * @default true
   */
  required?: boolean;
}

/** What `@Fenced` was told. */
export interface FencedPlan {
  readonly key: string | ((request: unknown) => unknown) | undefined;
  readonly gate: GateReference | false | undefined;
  readonly internal: boolean;
  readonly required: boolean;
}

type AnyMethod = (this: object, ...args: unknown[]) => unknown;

/**
 * On a controller, a message handler or one of their methods: lets a call in only with the fence of its caller's lease,
 * and only if that is not stale. 428 without a fence, 400 with one that is none, 403 with one that nobody vouches for,
 * 409 with a stale one. Gates that the handler asks find the fence by themselves.
 *
 * @example
 * ```ts
 * @Post('months/:month/close')
 * @Fenced({ key: (request: Request) => `books:${request.params.month}` })
 * async close(@Param('month') month: string, @Fence() fence: number) {}
 * ```
 * @publicApi
 */
export function Fenced<Request = never>(
  options: FencedOptions<Request> = {},
): ClassDecorator & MethodDecorator {
  return ((target: object, name?: string | symbol, descriptor?: PropertyDescriptor) => {
    const isMethod = name !== undefined && descriptor !== undefined;
    const label = isMethod ? labelOf(target, name) : (target as { name: string }).name;
    const plan = toPlan(options as FencedOptions<unknown>, label);
    if (isMethod) {
      fillFence(target, name, descriptor);
      Reflect.defineMetadata(FENCED, plan, descriptor.value as object);
      UseInterceptors(FencedInterceptor)(target, name, descriptor);
    } else {
      fillFences((target as new () => object).prototype);
      Reflect.defineMetadata(FENCED, plan, target);
      UseInterceptors(FencedInterceptor)(target as new () => object);
    }
  }) as ClassDecorator & MethodDecorator;
}

function toPlan(options: FencedOptions<unknown>, label: string): FencedPlan {
  const complain = (message: string): never => {
    throw new TypeError(BAD_DECORATOR_OPTION(label, message));
  };
  if (typeof options !== 'object' || options === null) {
    complain(BAD_OPTION('options', options, 'an object'));
  }
  try {
    assertKnown(options, { key: true, gate: true, internal: true, required: true });
  } catch (error) {
    complain((error as Error).message);
  }
  const { key, gate, internal = false, required = true } = options;
  if (key !== undefined && typeof key !== 'function') assertMethodKey(key, label);
  if (typeof internal !== 'boolean') complain(BAD_OPTION('internal', internal, 'true or false'));
  if (typeof required !== 'boolean') complain(BAD_OPTION('required', required, 'true or false'));
  if (gate === null || (gate as unknown) === true) {
    complain(BAD_OPTION('gate', gate, 'a gate, what a module provides it by, or false'));
  }
  return { key, gate, internal, required };
}

/** In every method of a controller. */
function fillFences(prototype: object): void {
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof descriptor.value !== 'function' || name === 'constructor') continue;
    fillFence(prototype, name, descriptor);
    Object.defineProperty(prototype, name, descriptor);
  }
}

/** `@Fence()` where no lease of this process has filled it. */
function fillFence(target: object, name: string | symbol, descriptor: PropertyDescriptor): void {
  const parameters = parametersOf(target, name).filter(({ what }) => what === 'Fence');
  if (parameters.length === 0) return;
  const original = descriptor.value as AnyMethod;
  const wrapper: AnyMethod = function (...args) {
    const [bearer] = bearersOfContext();
    // What is there may be the caller's: a transport passes data and context by position.
    for (const { index } of parameters) args[index] = bearer?.fence;
    return original.apply(this, args);
  };
  dress(wrapper, original);
  Reflect.defineMetadata(FILLS_FENCE, true, wrapper);
  descriptor.value = wrapper;
}
