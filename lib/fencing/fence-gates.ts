import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, ModuleRef } from '@nestjs/core';
import { NO_SUCH_GATE, NOT_A_GATE } from '../lease.messages.js';
import { LeaseEngine } from '../lease/lease-engine.js';
import { FenceGate } from './fence-gate.js';

/**
 * A gate, or what a module provides it by.
 *
 * @publicApi
 */
export type GateReference =
  FenceGate | (abstract new (...args: never[]) => FenceGate) | string | symbol;

/** The gates of an application: finds them, and hears of what they refuse. */
@Injectable()
export class FenceGates implements OnModuleInit, OnApplicationShutdown {
  readonly #known = new Map<GateReference, FenceGate>();
  /** What ends it for each: a gate may outlive its applications, and is not to keep them. */
  readonly #adopted = new Map<FenceGate, () => void>();

  constructor(
    private readonly engine: LeaseEngine,
    private readonly modules: ModuleRef,
    private readonly discovery: DiscoveryService,
  ) {}

  onModuleInit(): void {
    for (const { instance } of this.discovery.getProviders()) {
      if (instance instanceof FenceGate) this.adopt(instance);
    }
  }

  /** From now on what it refuses is an event of this application. */
  adopt(gate: FenceGate): FenceGate {
    if (!this.#adopted.has(gate)) this.#adopted.set(gate, gate.tellTo(this.engine.events));
    return gate;
  }

  /** The last that Nest calls: what is refused while the application stops is still told. */
  onApplicationShutdown(): void {
    for (const forget of this.#adopted.values()) forget();
    this.#adopted.clear();
  }

  /** @param user - who asks for it, for people */
  resolve(reference: GateReference, user: string): FenceGate {
    let gate = this.#known.get(reference);
    if (gate === undefined) {
      gate = this.adopt(this.#find(reference, user));
      this.#known.set(reference, gate);
    }
    return gate;
  }

  #find(reference: GateReference, user: string): FenceGate {
    if (reference instanceof FenceGate) return reference;
    const name = typeof reference === 'function' ? reference.name : String(reference);
    let found: unknown;
    try {
      found = this.modules.get(reference, { strict: false });
    } catch (error) {
      throw new TypeError(NO_SUCH_GATE(user, name), { cause: error });
    }
    if (!(found instanceof FenceGate)) throw new TypeError(NOT_A_GATE(user, name));
    return found;
  }
}
