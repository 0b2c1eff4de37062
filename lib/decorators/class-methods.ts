import { Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';

/** A method of a controller or provider. */
export interface ClassMethod {
  readonly prototype: object;
  readonly name: string;
  readonly method: object;
  /** `ClassName.methodName`. */
  readonly label: string;
  /** Absent while there is no one instance: request-scoped and transient classes. */
  readonly instance: object | undefined;
}

/** All methods of all controllers and providers, as the explorers want them. */
@Injectable()
export class ClassMethods {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  *all(): Iterable<ClassMethod> {
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      const instance = wrapper.instance as object | null | undefined;
      const prototype: unknown = instance
        ? Object.getPrototypeOf(instance)
        : wrapper.metatype?.prototype;
      if (typeof prototype !== 'object' || prototype === null) continue;
      const isStatic = wrapper.isDependencyTreeStatic() && !wrapper.isTransient;
      for (const name of this.scanner.getAllMethodNames(prototype)) {
        const method: unknown = (prototype as Record<string, unknown>)[name];
        if (typeof method !== 'function') continue;
        const label = `${prototype.constructor.name}.${name}`;
        yield {
          prototype,
          name,
          method,
          label,
          instance: isStatic && instance ? instance : undefined,
        };
      }
    }
  }
}
