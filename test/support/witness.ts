import { performance } from 'node:perf_hooks';
import { LeaseService } from '../../lib/lease.service.js';
import type { LeaseEvent, LeaseLostEvent } from '../../lib/lease/events.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { Lease } from '../../lib/lease/lease.js';
import type { LeaseStore } from '../../lib/stores/lease-store.js';

export interface Telling {
  readonly at: number;
  readonly reason: string;
  readonly fence?: number;
}

/** An engine on a store, with somebody who writes down what happens to its leases and when. */
export class Witness {
  readonly engine: LeaseEngine;
  readonly service: LeaseService;
  readonly events: LeaseEvent[] = [];
  /** Each way of being told of a loss, and what it told. */
  readonly told = {
    signal: [] as Telling[],
    event: [] as Telling[],
    lease: [] as Telling[],
    service: [] as Telling[],
  };
  /** Monotonic time of the last grant or renewal that was answered. */
  trustedSince = 0;

  constructor(
    readonly store: LeaseStore,
    ttl: number,
  ) {
    this.engine = new LeaseEngine({ store, namespace: 'lease', instance: 'witness', ttl, wait: 0 });
    this.service = new LeaseService(this.engine);
    this.service.events$.subscribe((event) => {
      this.events.push(event);
      if (event.type === 'acquired' || event.type === 'renewed') {
        this.trustedSince = performance.now();
      }
      if (event.type === 'lost') this.told.event.push(telling(event));
    });
    this.service.lost$.subscribe((event) => this.told.service.push(telling(event)));
  }

  /** Takes the key and watches the lease. */
  async hold(key: string, options?: Parameters<LeaseEngine['acquire']>[1]): Promise<Lease> {
    const lease = await this.engine.acquire(key, options);
    this.watch(lease);
    return lease;
  }

  watch(lease: Lease): void {
    lease.signal.addEventListener('abort', () => {
      const reason = (lease.signal.reason as { reason?: string }).reason ?? 'no loss';
      this.told.signal.push({ at: performance.now(), reason });
    });
    lease.lost$.subscribe((event) => this.told.lease.push(telling(event)));
  }

  count(type: LeaseEvent['type']): number {
    return this.events.filter((event) => event.type === type).length;
  }

  get isTold(): boolean {
    return this.told.signal.length > 0;
  }

  /** Of every way: how often it told, and what. */
  get tellings(): Record<keyof Witness['told'], string[]> {
    const reasons = (list: Telling[]): string[] => list.map(({ reason }) => reason);
    const { signal, event, lease, service } = this.told;
    return {
      signal: reasons(signal),
      event: reasons(event),
      lease: reasons(lease),
      service: reasons(service),
    };
  }

  /** The latest of the tellings. */
  get toldAt(): number {
    return Math.max(...Object.values(this.told).flatMap((list) => list.map(({ at }) => at)));
  }

  async close(): Promise<void> {
    await this.engine.close(0, 0);
    await this.store.close();
  }
}

/** What {@link Witness.tellings} is when all ways tell the same, once. */
export const allTold = (reason: string): Witness['tellings'] => ({
  signal: [reason],
  event: [reason],
  lease: [reason],
  service: [reason],
});

export const nobodyTold: Witness['tellings'] = { signal: [], event: [], lease: [], service: [] };

const telling = ({ reason, fence }: LeaseLostEvent): Telling => ({
  at: performance.now(),
  reason,
  fence,
});
