import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { Agenda, type Appointment } from '../../lib/lease/agenda.js';
import type { Clock } from '../../lib/lease/clock.js';
import { MemoryLeaseStore } from '../../lib/stores/memory/memory-lease-store.js';
import { simulateWatched } from './explore.js';
import { ReferenceStore } from './reference-store.js';
import type { Fault, Scenario, ServerFault, Step, Take } from './scenario.js';

/** Two processes, one key, a handful of steps: small enough that what fails can be read. */
const ms = fc.integer({ min: 0, max: 400 });
const take: fc.Arbitrary<Take> = fc.record(
  {
    do: fc.constantFrom('try', 'acquire', 'run'),
    keys: fc.constant([0]),
    ttl: fc.constantFrom(60, 150, 300),
    wait: fc.constantFrom(0, 5, 100, 600),
    abortAfter: ms,
    minHold: ms,
    maxHold: fc.integer({ min: 1, max: 400 }),
    renew: fc.boolean(),
    deeds: fc.array(
      fc.record({ after: ms, act: fc.constantFrom('look', 'renew', 'renew-longer', 'enter') }),
      { maxLength: 3 },
    ),
    ending: fc.constantFrom('release', 'release-twice', 'throw', 'forget', 'ignore-loss'),
  },
  { requiredKeys: ['do', 'keys', 'ttl', 'wait', 'deeds', 'ending'] },
);
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ do: fc.constantFrom('pause' as const, 'suspend' as const, 'cut-off' as const), ms }),
  fc.record({ do: fc.constant('close' as const), grace: ms, stopGrace: ms }),
  fc.constant({ do: 'crash' as const }),
);
const serverFault: fc.Arbitrary<ServerFault> = fc.oneof(
  fc.record({
    do: fc.constantFrom('freeze' as const, 'restart' as const, 'restart-empty' as const),
    ms,
  }),
  fc.constant({ do: 'clear' as const, key: 0 }),
);
const at = fc.integer({ min: 0, max: 600 });
const process = fc.integer({ min: 0, max: 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ at, process, what: take }) },
  { weight: 1, arbitrary: fc.record({ at, process, what: fault }) },
  { weight: 1, arbitrary: fc.record({ at, what: serverFault }) },
);
const scenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  processes: fc.constantFrom(
    [
      { rate: 1.01, offset: 0 },
      { rate: 0.99, offset: 5 },
    ],
    [
      { rate: 0.99, offset: 0 },
      { rate: 1, offset: 1e6 },
    ],
  ),
  serverRate: fc.constantFrom(0.99, 1, 1.01),
  keys: fc.constantFrom([1], [2]),
  network: fc.record({
    latency: fc.constantFrom(0.3, 5),
    tail: fc.constantFrom(0, 0.1),
    tailMs: fc.constantFrom(20, 200),
    requestLost: fc.constantFrom(0, 0.2),
    replyLost: fc.constantFrom(0, 0.2),
    duplicated: fc.constantFrom(0, 0.1),
    reset: fc.constantFrom(0, 0.1),
    callLate: fc.constantFrom(0, 0.3),
  }),
  push: fc.boolean(),
  line: fc.boolean(),
  steps: fc.array(step, { maxLength: 6 }).map((steps) => steps.toSorted((a, b) => a.at - b.at)),
});

/** Time that a test sets by hand. */
class HandClock implements Clock {
  time = 1_000;
  #timers = new Set<{ due: number; run: () => void }>();

  now = (): number => this.time;
  wall = (): number => this.time;

  setTimer(run: () => void, after: number): unknown {
    const timer = { due: this.time + after, run };
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(timer: unknown): void {
    this.#timers.delete(timer as { due: number; run: () => void });
  }

  advance(by: number): void {
    const end = this.time + by;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.due <= end);
      const [next] = due.toSorted((a, b) => a.due - b.due);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.time = Math.max(this.time, next.due);
      next.run();
    }
    this.time = end;
  }
}

describe('small models', () => {
  it('a fleet of two keeps the rules in any short story', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (story) => {
        const { violation } = await simulateWatched(story);
        if (violation) throw violation;
      }),
      { seed: 1, numRuns: 150 },
    );
  }, 60_000);

  it('the memory store answers what the contract says, in any order of requests', async () => {
    const token = fc.constantFrom('a', 'b', 'c');
    const key = fc.constantFrom('k', 'l');
    const ttl = fc.constantFrom(1, 10, 25);
    const request = fc.oneof(
      fc.record({
        do: fc.constant('acquire' as const),
        key,
        token,
        ttl,
        permits: fc.constantFrom(1, 1, 2, 3),
        once: fc.constantFrom(undefined, 'x'),
      }),
      fc.record({ do: fc.constant('renew' as const), key, token, ttl }),
      fc.record({
        do: fc.constant('release' as const),
        key,
        token,
        keepFor: fc.constantFrom(0, 0, 7),
        done: fc.constantFrom(undefined, { once: 'x', remember: 30 }),
      }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 20 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 40 }), async (requests) => {
        const clock = new HandClock();
        const memory = new MemoryLeaseStore(clock);
        const reference = new ReferenceStore(() => clock.time);
        const fences = new Map<string, number>();
        for (const asked of requests) {
          if (asked.do === 'pass') {
            clock.advance(asked.ms);
          } else if (asked.do === 'acquire') {
            const { once, do: _, ...rest } = asked;
            const claim = { ...rest, ...(once ? { once } : {}), instance: 'i', patience: 1e6 };
            const [is, should] = [await memory.acquire(claim), reference.acquire(claim, Infinity)];
            const known = fences.get(`${asked.key} ${asked.token}`);
            expect({ ...is, fence: 0 }).toEqual({ ...should, fence: 0 });
            if (is.granted && known !== undefined) expect(is.fence).toBeGreaterThanOrEqual(known);
            if (is.granted) fences.set(`${asked.key} ${asked.token}`, is.fence);
          } else {
            const hold = { ttl: 10, permits: 1, ...asked };
            if (asked.do === 'renew') {
              expect(await memory.renew([hold])).toEqual(reference.renew([hold]));
            } else {
              const { keepFor, done } = asked;
              const how = { ...(keepFor ? { keepFor } : {}), ...(done ? { done } : {}) };
              expect(await memory.release(hold, how)).toBe(reference.release(hold, how));
            }
          }
        }
      }),
      { seed: 1, numRuns: 500 },
    );
  });

  it('the agenda keeps every appointment once, at its time and in order', () => {
    const change = fc.oneof(
      fc.record({ do: fc.constant('schedule' as const), who: fc.nat(9), ms: fc.nat(100) }),
      fc.record({ do: fc.constant('cancel' as const), who: fc.nat(9) }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.nat(60) }),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const clock = new HandClock();
        const agenda = new Agenda(clock);
        const due = new Map<number, number>();
        const appointments = Array.from({ length: 10 }, (_, who): Appointment => ({
          due: 0,
          slot: -1,
          keep: () => {
            expect(clock.time).toBe(due.get(who));
            due.delete(who);
          },
        }));
        for (const one of changes) {
          if (one.do === 'schedule') {
            due.set(one.who, clock.time + one.ms);
            agenda.schedule(appointments[one.who]!, clock.time + one.ms);
          } else if (one.do === 'cancel') {
            due.delete(one.who);
            agenda.cancel(appointments[one.who]!);
          } else {
            clock.advance(one.ms);
            for (const time of due.values()) expect(time).toBeGreaterThan(clock.time - 1e-9);
          }
          expect(agenda.size).toBe(due.size);
        }
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});
