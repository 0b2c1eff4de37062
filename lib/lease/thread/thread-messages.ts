import type { Hold, StoreInThread } from '../../stores/lease-store.js';

/** What the thread is born with. */
export interface ThreadStart {
  readonly store: StoreInThread;
  readonly heartbeat: SharedArrayBuffer;
  readonly hungAfter: number;
}

/** A lease to be renewed, or news of one that is: all times in shared time. */
export interface Charge {
  /** Names it for as long as the thread lives; a place on the board is used again, this is not. */
  readonly id: number;
  readonly place: number;
  readonly hold: Hold;
  readonly mono: number;
  readonly wall: number;
  readonly maxHoldAt: number;
}

export interface ToThread {
  readonly sheets: readonly SharedArrayBuffer[];
  readonly charges: readonly Charge[];
  /** Ids of those that are to be renewed no more. */
  readonly left: readonly number[];
}

export interface FromThread {
  readonly renewed: readonly number[];
  readonly gone: readonly number[];
  readonly failed: readonly { readonly id: number; readonly error: Error }[];
  /** Places in which the thread will never write for their old lease again. */
  readonly freed: readonly number[];
}
