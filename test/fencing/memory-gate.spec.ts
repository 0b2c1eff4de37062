import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { MemoryFenceGate, StaleFenceException } from 'nestjs-lease';
import { describeFenceGate } from './gate-suite.js';

const gate = new MemoryFenceGate();
describeFenceGate('memory', () => ({ gate, another: () => gate }));

const DAY = 86_400_000;

describe('marks that are retired', () => {
  it('leave no older fence a way in, whatever the clock does within half of the retention', async () => {
    const use = fc.record({
      resource: fc.integer({ min: 0, max: 3 }),
      // How old the fence is when it comes, in days; one from the future is a clock that was set back since.
      age: fc.integer({ min: -3, max: 30 }),
      days: fc.integer({ min: 0, max: 12 }),
      back: fc.integer({ min: 0, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(use, { maxLength: 60 }), async (story) => {
        let now = 1_790_000_000_000;
        const forgetful = new MemoryFenceGate({ retention: '10d', wall: () => now });
        const accepted = new Map<number, number>();
        for (const { resource, age, days, back } of story) {
          now += days * DAY;
          const fence = (now - age * DAY) * 1_000;
          now -= back * DAY;
          // Enough others to have it forget what it may.
          for (let i = 0; i < 1_001; i++) {
            await forgetful.admit(`filler ${i}`, now * 1_000 + 20 * DAY * 1_000).catch(() => {});
          }
          const before = accepted.get(resource) ?? 0;
          const isAdmitted = await forgetful.admit(`${resource}`, fence).then(
            () => true,
            () => false,
          );
          if (isAdmitted) {
            expect(fence).toBeGreaterThanOrEqual(before);
            accepted.set(resource, fence);
          }
          now += back * DAY;
        }
      }),
      { numRuns: 15 },
    );
  });

  it('cost no memory', async () => {
    let now = 1_790_000_000_000;
    const forgetful = new MemoryFenceGate({ retention: '2d', wall: () => now });
    for (let day = 0; day < 20; day++, now += DAY) {
      for (let i = 0; i < 500; i++) await forgetful.admit(`${day} ${i}`, now * 1_000);
    }
    expect(forgetful.size).toBeLessThan(4_000);
  });

  it('are kept for as long as they are used, under a lease that is older than the retention', async () => {
    let now = 1_790_000_000_000;
    const forgetful = new MemoryFenceGate({ retention: '10d', wall: () => now });
    const fence = now * 1_000;
    for (let day = 0; day < 60; day++, now += DAY) await forgetful.admit('outbox', fence);
    await expect(forgetful.admit('new', fence)).rejects.toBeInstanceOf(StaleFenceException);
  });

  it('are kept for ever on demand, for fences that are no times', async () => {
    const counting = new MemoryFenceGate({ retention: Infinity });
    await counting.admit('row', 1);
    await counting.admit('row', 2);
    await expect(counting.admit('row', 1)).rejects.toMatchObject({ highest: 2 });
  });

  it.each(['1h', 'soon', -1, NaN, null])('a retention of %p is named', (retention) => {
    expect(() => new MemoryFenceGate({ retention: retention as never })).toThrow('"retention"');
  });
});
