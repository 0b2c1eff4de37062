import { describe, expect, it } from '@jest/globals';
import { ServerTime } from '../../../../lib/stores/redis/server-time.js';

describe('What is known of the clock of a server', () => {
  it('is nothing before it was heard, and after it was forgotten', () => {
    const time = new ServerTime();
    expect(time.isFreshAt(performance.now())).toBe(false);
    time.heard(1_000);
    expect(time.isFreshAt(performance.now())).toBe(true);
    time.forget();
    expect(time.isFreshAt(performance.now())).toBe(false);
  });

  it('is not what makes no sense', () => {
    const time = new ServerTime();
    time.heard(NaN);
    time.heard(Infinity);
    expect(time.isFreshAt(performance.now())).toBe(false);
  });

  it('makes deadlines in the time of the server, however far from ours (rule 3)', () => {
    const time = new ServerTime();
    time.heard(5_000_000_000_000);
    const deadline = time.deadlineAt(performance.now() + 100);
    expect(Number.isInteger(deadline)).toBe(true);
    expect(deadline).toBeGreaterThanOrEqual(5_000_000_000_100);
    expect(deadline).toBeLessThan(5_000_000_010_000);
  });

  it('makes no deadline that is a fraction of a millisecond too late (rule 2)', () => {
    const time = new ServerTime();
    for (let i = 0; i < 100; i++) {
      const before = performance.now();
      time.heard(1_000);
      const deadline = time.deadlineAt(performance.now() + 100);
      expect(deadline).toBeLessThanOrEqual(1_100 + performance.now() - before);
    }
  });

  it('is known best by the fastest answer of late', () => {
    const time = new ServerTime();
    const moment = performance.now();
    time.heard(1_000_000);
    const byFirst = time.at(moment);
    // Said long before it was heard.
    time.heard(500_000);
    expect(time.at(moment)).toBe(byFirst);
    time.heard(2_000_000);
    expect(time.at(moment)).toBeGreaterThan(byFirst + 900_000);
    // Never behind what was said, never ahead of it by more than what passed since.
    expect(time.at(performance.now())).toBeGreaterThanOrEqual(2_000_000);
    time.forget();
    time.heard(3_000);
    expect(time.at(moment)).toBeLessThanOrEqual(3_000);
  });
});
