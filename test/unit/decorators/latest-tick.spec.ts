import { describe, expect, it, jest } from '@jest/globals';
import { CronTime } from 'cron';
import { latestTick } from '../../../lib/decorators/scheduled-jobs.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** cron asks the wall clock which of two times of the same name is meant, so it has to show the time in question. */
function at<T>(now: number, look: () => T): T {
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now);
  try {
    return look();
  } finally {
    clock.mockRestore();
  }
}

const tickAt = (time: CronTime, now: number | string) => {
  const ms = typeof now === 'string' ? Date.parse(now) : now;
  return at(ms, () => latestTick(time, ms));
};

/** The times at which cron itself would fire: it sets its next timer when the last one fires. */
function* firings(time: CronTime, from: string, to: string): Iterable<number> {
  let now = Date.parse(from);
  for (;;) {
    // It fires a little late, never early.
    const next = at(now, () => (time.sendAt() as { toMillis(): number }).toMillis());
    if (next > Date.parse(to)) return;
    yield next;
    now = next + 3;
  }
}

describe('latestTick', () => {
  it.each([
    ['every second', '* * * * * *', '2026-05-04T10:11:12Z', SECOND],
    ['every 5 seconds', '*/5 * * * * *', '2026-05-04T10:11:10Z', 5 * SECOND],
    ['every minute', '* * * * *', '2026-05-04T10:11:00Z', MINUTE],
    ['hourly', '0 * * * *', '2026-05-04T10:00:00Z', HOUR],
    ['daily', '30 4 * * *', '2026-05-04T04:30:00Z', DAY],
    ['weekly', '0 0 * * 1', '2026-05-04T00:00:00Z', 7 * DAY],
    ['monthly', '0 0 1 * *', '2026-05-01T00:00:00Z', 31 * DAY],
    ['yearly', '0 0 1 1 *', '2027-01-01T00:00:00Z', 365 * DAY],
    ['on 29 February', '0 0 29 2 *', '2028-02-29T00:00:00Z', 1461 * DAY],
  ])('names the scheduled time and the period: %s', (_, expression, tick, period) => {
    const time = new CronTime(expression, 'UTC');
    expect(tickAt(time, Date.parse(tick) + 4)).toEqual({ at: new Date(tick), period });
  });

  it.each([0, 4, 250, 999, 20 * SECOND, 59 * SECOND])(
    'names the same tick for an instance that fires %d ms late',
    (late) => {
      const time = new CronTime('* * * * *', 'UTC');
      const tick = Date.parse('2026-05-04T10:11:00Z');
      expect(tickAt(time, tick + late)?.at).toEqual(new Date(tick));
    },
  );

  it('names the tick and not the one before when the clock was set back by a little', () => {
    const time = new CronTime('* * * * *', 'UTC');
    expect(tickAt(time, '2026-05-04T10:10:59.980Z')?.at).toEqual(new Date('2026-05-04T10:11:00Z'));
  });

  it.each([
    ['a minute late, monthly', '0 0 1 * *', '2026-05-01T00:01:00Z', '2026-05-01T00:00:00Z'],
    ['an hour late, daily', '30 4 * * *', '2026-05-04T05:30:00Z', '2026-05-04T04:30:00Z'],
    ['a week late, monthly', '0 0 1 * *', '2026-05-08T00:00:00Z', '2026-05-01T00:00:00Z'],
    ['months late, yearly', '0 0 1 1 *', '2026-11-18T00:00:00Z', '2026-01-01T00:00:00Z'],
  ])('finds a tick of long ago: %s', (_, expression, now, tick) => {
    expect(tickAt(new CronTime(expression, 'UTC'), now)?.at).toEqual(new Date(tick));
  });

  it.each([
    [330, '2026-05-03T22:30:00Z'],
    [-330, '2026-05-04T09:30:00Z'],
    [0, '2026-05-04T04:00:00Z'],
    [60, '2026-05-04T03:00:00Z'],
    [-45, '2026-05-04T04:45:00Z'],
  ])('reads the schedule at a UTC offset of %d minutes', (offset, tick) => {
    const time = new CronTime('0 4 * * *', null, offset);
    expect(tickAt(time, Date.parse(tick) + 2)).toEqual({ at: new Date(tick), period: DAY });
  });

  it.each([
    ['Europe/Berlin', '2026-05-04T02:00:00Z'],
    ['Asia/Kolkata', '2026-05-03T22:30:00Z'],
    ['America/New_York', '2026-05-04T08:00:00Z'],
    ['Australia/Lord_Howe', '2026-05-03T17:30:00Z'],
  ])('reads the schedule in the time zone %s', (zone, tick) => {
    const time = new CronTime('0 4 * * *', zone);
    expect(tickAt(time, Date.parse(tick) + 2)).toEqual({ at: new Date(tick), period: DAY });
  });

  it('names the date of a job that is scheduled by a Date', () => {
    const date = new Date('2026-05-04T10:11:12.345Z');
    expect(tickAt(new CronTime(date), date.getTime() + 7)?.at).toEqual(date);
  });

  describe.each([
    ['clocks go forward in Berlin', 'Europe/Berlin', '2027-03-27T23:30Z', '2027-03-28T02:30Z'],
    ['clocks go back in Berlin', 'Europe/Berlin', '2027-10-30T22:30Z', '2027-10-31T02:30Z'],
    [
      'clocks go half an hour forward on Lord Howe',
      'Australia/Lord_Howe',
      '2027-10-02T12:00Z',
      '2027-10-02T19:00Z',
    ],
    [
      'clocks go half an hour back on Lord Howe',
      'Australia/Lord_Howe',
      '2027-04-03T12:00Z',
      '2027-04-03T19:00Z',
    ],
    ['clocks go forward in Sydney', 'Australia/Sydney', '2027-10-02T13:00Z', '2027-10-02T20:00Z'],
    ['clocks go back in Sydney', 'Australia/Sydney', '2027-04-03T12:00Z', '2027-04-03T20:00Z'],
  ])('when %s', (_, zone, from, to) => {
    it.each([
      '*/20 * * * *',
      '5 * * * *',
      '0 * * * *',
      '30 2 * * *',
      '0 2 * * *',
      '0 3 * * *',
      '45 1,2,3 * * *',
      '0 0 */2 * * *',
    ])('every firing of %s names its own time, soon or late', (expression) => {
      const time = new CronTime(expression, zone);
      const fired = [...firings(time, from, to)];
      const named = fired.map((tick, i) => {
        const next = fired[i + 1] ?? tick + MINUTE;
        return [4, next - tick - 60].map(
          (late) => tickAt(time, Math.floor(tick + late))?.at.toISOString() ?? 'none',
        );
      });
      expect(named).toEqual(fired.map((tick) => [4, 60].map(() => new Date(tick).toISOString())));
    });
  });
});
