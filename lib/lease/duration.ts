import { BAD_DURATION, BAD_DURATION_RANGE } from '../lease.messages.js';

/**
 * A length of time: a number of milliseconds, or a number with its unit.
 *
 * @example
 * ```ts
 * const ttl: Duration = '10s';
 * const wait: Duration = 250; // milliseconds
 * ```
 * @publicApi
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** Timers and stores count in milliseconds that a double holds exactly; ten years is more than any lease needs. */
export const LONGEST = 3_650 * UNITS.d;

export interface DurationBounds {
  min?: number;
  max?: number;
}

/** Milliseconds of `value`, or an error that names the option it was given for. */
export function parseDuration(
  value: unknown,
  option: string,
  { min = 0, max = LONGEST }: DurationBounds = {},
): number {
  const ms = toMilliseconds(value);
  if (ms === undefined) throw new TypeError(BAD_DURATION(option, value));
  if (!(ms >= min && ms <= max)) throw new RangeError(BAD_DURATION_RANGE(option, value, min, max));
  return ms;
}

function toMilliseconds(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isNaN(value) ? undefined : value;
  if (typeof value !== 'string') return undefined;
  const match = PATTERN.exec(value);
  return match ? Number(match[1]) * UNITS[match[2] as keyof typeof UNITS] : undefined;
}
