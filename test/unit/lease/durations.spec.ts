import { describe, expect, it } from '@jest/globals';
import { LONGEST, parseDuration } from '../../../lib/lease/duration.js';
import { BAD_DURATION, BAD_DURATION_RANGE } from '../../../lib/lease.messages.js';

describe('a duration', () => {
  it.each([
    [0, 0],
    [250, 250],
    [0.5, 0.5],
    ['250ms', 250],
    ['10s', 10_000],
    ['1.5s', 1_500],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['0s', 0],
  ])('%p is %d milliseconds', (value, ms) => {
    expect(parseDuration(value, 'ttl')).toBe(ms);
  });

  it.each([
    '',
    '10',
    's',
    '10 s',
    ' 10s',
    '10s ',
    '10S',
    '-10s',
    '+10s',
    '1e3s',
    '.5s',
    '5.s',
    '1w',
    '10s\n',
    '١s',
    Number.NaN,
    undefined,
    null,
    true,
    10n,
    [],
    {},
    new Date(0),
  ])('%p is none, which is a TypeError that names the option', (value) => {
    expect(() => parseDuration(value, 'some option')).toThrow(
      new TypeError(BAD_DURATION('some option', value)),
    );
  });

  it.each([-1, Infinity, -Infinity, LONGEST + 1, '3651d'])(
    '%p is out of range, which is a RangeError that names the option',
    (value) => {
      expect(() => parseDuration(value, 'ttl')).toThrow(
        new RangeError(BAD_DURATION_RANGE('ttl', value, 0, LONGEST)),
      );
    },
  );

  it('has the bounds it is given', () => {
    expect(parseDuration(5, 'ttl', { min: 5, max: 5 })).toBe(5);
    expect(() => parseDuration(4, 'ttl', { min: 5 })).toThrow(RangeError);
    expect(() => parseDuration(6, 'ttl', { max: 5 })).toThrow(RangeError);
    expect(parseDuration(Infinity, 'wait', { max: Infinity })).toBe(Infinity);
  });
});
