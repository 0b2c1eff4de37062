import { Inject } from '@nestjs/common';
import { isObservable, Observable } from 'rxjs';
import { MISSING_MODULE_HINT, NOT_A_METHOD, NOT_MANAGED, SYNC_METHOD } from '../lease.messages.js';
import type { Lease } from '../lease/lease.js';
import { holdGenerator, holdObservable, type RunLeased } from './held-result.js';
import { LeasedMethods } from './leased-methods.js';
import { parametersOf } from './lease.metadata.js';

type AnyMethod = (this: object, ...args: unknown[]) => unknown;

/** One call of a decorated method. */
export interface MethodCall {
  readonly instance: object;
  readonly args: readonly unknown[];
  readonly methodName: string | symbol;
  /** The function that carries the metadata of every decorator. */
  readonly method: object;
  /** `ClassName.methodName`, of the class of the instance. */
  readonly label: string;
}

/** Does what is to be done under the lease. `guarded`: the gate, with the lease's fence in it. */
export type Work = (lease: Lease | undefined, guarded?: object) => unknown;

/**
 * What a decorator does around a method: gets a lease and runs `work` under it, or refuses, or resolves with
 * `undefined` to skip. Its first steps, up to the first await, run while the caller is still on the stack. A result
 * that is a stream is the caller's at once, and the lease held until it is over.
 */
export type Around = (methods: LeasedMethods, call: MethodCall, work: Work) => Promise<unknown>;

/** Where Nest puts what a decorated method needs. Its description is what Nest prints when the module is missing. */
const RUNNER = Symbol(MISSING_MODULE_HINT);

export const labelOf = (holder: object, name: string | symbol): string =>
  `${holder.constructor.name}.${String(name)}`;

class Call implements MethodCall {
  constructor(
    readonly instance: object,
    readonly args: readonly unknown[],
    readonly methodName: string | symbol,
    readonly method: object,
  ) {}

  get label(): string {
    return labelOf(this.instance, this.methodName);
  }
}

/**
 * Replaces a method by one that runs it under a lease. At definition time, because others (ScheduleExplorer, the
 * router) take the function early; and with all of its metadata, name and length, so that the order of decorators
 * does not matter.
 */
export function wrapMethod(
  decorator: string,
  target: object,
  methodName: string | symbol,
  descriptor: PropertyDescriptor | undefined,
  around: Around,
): void {
  const original = descriptor?.value as AnyMethod | undefined;
  if (typeof target === 'function' || typeof original !== 'function') {
    throw new TypeError(NOT_A_METHOD(decorator, String(methodName)));
  }
  assertNotSync(target, methodName, original);
  injectRunner(target);
  const parameters = parametersOf(target, methodName);

  const lease = (instance: object, args: unknown[], work: Work): Promise<unknown> => {
    const runner = (instance as { [RUNNER]?: LeasedMethods } | undefined)?.[RUNNER];
    if (runner === undefined) {
      const label = instance ? labelOf(instance, methodName) : String(methodName);
      return Promise.reject(new Error(NOT_MANAGED(label)));
    }
    const call = new Call(instance, args, methodName, wrapper);
    return around(runner, call, work);
  };

  /** Fills the parameters and calls the method. */
  const invoke = (
    instance: object,
    args: unknown[],
    lease: Lease | undefined,
    guarded: object | undefined,
  ): unknown => {
    for (const { index, what } of parameters) {
      if (what === 'Guarded') args[index] = guarded;
      else args[index] = what === 'Fence' ? lease?.fence : lease;
    }
    return original.apply(instance, args);
  };

  const leased =
    (instance: object, args: unknown[]): RunLeased =>
    (work) =>
      lease(instance, args, (held, guarded) =>
        work(held, () => invoke(instance, args, held, guarded)),
      );

  const wrappers: Record<MethodKind, AnyMethod> = {
    promise(...args) {
      return lease(this, args, (held, guarded) => {
        const returned = invoke(this, args, held, guarded);
        if (!isPromiseLike(returned) && !isObservable(returned)) {
          throw new TypeError(SYNC_METHOD(labelOf(this, methodName)));
        }
        return returned;
      });
    },
    observable(...args) {
      return holdObservable(leased(this, args));
    },
    generator(...args) {
      return holdGenerator(leased(this, args));
    },
  };
  const wrapper = wrappers[kindOf(target, methodName, original)];
  dress(wrapper, original);
  descriptor!.value = wrapper;
}

const SYNC_TYPES = new Set<unknown>([String, Number, Boolean, BigInt, Symbol, Array, Function]);

type MethodKind = 'promise' | 'observable' | 'generator';

function kindOf(target: object, name: string | symbol, original: AnyMethod): MethodKind {
  if (Object.prototype.toString.call(original) === '[object AsyncGeneratorFunction]') {
    return 'generator';
  }
  return Reflect.getMetadata('design:returntype', target, name) === Observable
    ? 'observable'
    : 'promise';
}

/**
 * Said at start-up where the compiler left word of it; else at the first call. It leaves the same word for a method
 * that returns nothing and for one whose author wrote no type, so that says nothing.
 */
function assertNotSync(target: object, name: string | symbol, original: AnyMethod): void {
  const isAsync = Object.prototype.toString.call(original).startsWith('[object Async');
  if (isAsync) return;
  const declared: unknown = Reflect.getMetadata('design:returntype', target, name);
  if (SYNC_TYPES.has(declared)) {
    throw new TypeError(SYNC_METHOD(labelOf(target, name)));
  }
}

const isPromiseLike = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';

function injectRunner(target: object): void {
  const key = 'self:properties_metadata';
  const own = (Reflect.getMetadata(key, target.constructor) ?? []) as { key: unknown }[];
  if (own.some((dependency) => dependency.key === RUNNER)) return;
  Inject(LeasedMethods)(target, RUNNER);
}

export function dress(wrapper: AnyMethod, original: AnyMethod): void {
  for (const key of Reflect.getOwnMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), wrapper);
  }
  Object.defineProperty(wrapper, 'name', { value: original.name, configurable: true });
  Object.defineProperty(wrapper, 'length', { value: original.length, configurable: true });
}
