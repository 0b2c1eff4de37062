import { inspect } from 'node:util';
import type { Clock } from './clock.js';

/** Something that is to happen at a time. `slot` belongs to the agenda; start it at -1. */
export interface Appointment {
  due: number;
  slot: number;
  /** How many milliseconds before its time it may be kept when another is kept anyway: {@link leewayOf} or less. */
  readonly leeway?: number;
  /** Must not throw; if it does, the others are still kept (rule 12). */
  keep(): void;
}

const LONGEST_TIMER = 2 ** 30;
/** Bounds how much of the heap a round looks at. */
const LEEWAY_AT_MOST = 250;

/** Leases that are due at about the same time are renewed together, a little early (rule 6). */
export const leewayOf = (ttl: number): number => Math.min(ttl / 60, LEEWAY_AT_MOST);

/**
 * All that a process has to do at a time, behind one timer: a heap whose appointments know their place,
 * so that taking and giving back a lease costs no timer at all.
 */
export class Agenda {
  readonly #heap: Appointment[] = [];
  #timer: unknown;
  #armedFor = Infinity;

  constructor(readonly clock: Clock) {}

  get size(): number {
    return this.#heap.length;
  }

  schedule(appointment: Appointment, due: number): void {
    appointment.due = due;
    if (appointment.slot < 0) {
      appointment.slot = this.#heap.length;
      this.#heap.push(appointment);
    }
    this.#sink(this.#rise(appointment.slot));
    this.#arm();
  }

  cancel(appointment: Appointment): void {
    const { slot } = appointment;
    if (slot < 0) return;
    appointment.slot = -1;
    const last = this.#heap.pop()!;
    if (last === appointment) return;
    this.#put(last, slot);
    this.#sink(this.#rise(slot));
  }

  /** Runs `keep` after `ms`, unless cancelled. */
  after(ms: number, keep: () => void): Appointment {
    const appointment: Appointment = { due: 0, slot: -1, keep };
    this.schedule(appointment, this.clock.now() + ms);
    return appointment;
  }

  /** Keeps at once what is left: somebody waits for each of them, and would for ever. */
  stop(): void {
    this.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#armedFor = Infinity;
    const left = this.#heap.splice(0);
    for (const appointment of left) appointment.slot = -1;
    for (const appointment of left) this.#keep(appointment);
  }

  #arm(): void {
    const first = this.#heap[0];
    // A timer that fires too early costs one look; setting it anew at every change would cost far more.
    if (first === undefined || first.due >= this.#armedFor) return;
    if (this.#timer !== undefined) this.clock.clearTimer(this.#timer);
    const wait = Math.min(Math.max(0, Math.ceil(first.due - this.clock.now())), LONGEST_TIMER);
    this.#armedFor = first.due;
    this.#timer = this.clock.setTimer(() => this.#ring(), wait);
  }

  #ring(): void {
    this.#timer = undefined;
    // Until the round is over nothing below needs a timer of its own.
    this.#armedFor = -Infinity;
    const now = this.clock.now();
    // One that puts itself back at once is for the next round: a round always ends.
    let isInCompany = false;
    for (let left = this.#heap.length; left > 0; left--) {
      const first = this.#heap[0];
      if (first === undefined || first.due > now) break;
      isInCompany = true;
      this.cancel(first);
      this.#keep(first);
    }
    if (isInCompany) this.#keepEarly(now);
    this.#armedFor = Infinity;
    this.#arm();
  }

  /** One round for what would else be many: those who may come along do. */
  #keepEarly(now: number): void {
    const mayCome = ({ due, leeway = 0 }: Appointment): boolean => due - leeway <= now;
    const early: Appointment[] = [];
    const slots = [0];
    for (let slot = slots.pop(); slot !== undefined; slot = slots.pop()) {
      const appointment = this.#heap[slot];
      // All below it are later still.
      if (appointment === undefined || appointment.due > now + LEEWAY_AT_MOST) continue;
      if (mayCome(appointment)) early.push(appointment);
      slots.push(2 * slot + 1, 2 * slot + 2);
    }
    for (const appointment of early) {
      // Another may have cancelled it, or put it off.
      if (appointment.slot < 0 || !mayCome(appointment)) continue;
      this.cancel(appointment);
      this.#keep(appointment);
    }
  }

  #keep(appointment: Appointment): void {
    try {
      appointment.keep();
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : inspect(error));
    }
  }

  #put(appointment: Appointment, slot: number): void {
    this.#heap[slot] = appointment;
    appointment.slot = slot;
  }

  #rise(slot: number): number {
    const heap = this.#heap;
    const moving = heap[slot]!;
    while (slot > 0) {
      const above = (slot - 1) >> 1;
      if (heap[above]!.due <= moving.due) break;
      this.#put(heap[above]!, slot);
      slot = above;
    }
    this.#put(moving, slot);
    return slot;
  }

  #sink(slot: number): void {
    const heap = this.#heap;
    const moving = heap[slot]!;
    for (;;) {
      let below = 2 * slot + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && heap[below + 1]!.due < heap[below]!.due) below++;
      if (heap[below]!.due >= moving.due) break;
      this.#put(heap[below]!, slot);
      slot = below;
    }
    this.#put(moving, slot);
  }
}
