import { BAD_REPLY, CLAIM_TOO_LATE } from '../../lease.messages.js';
import type { Refusal } from '../lease-store.js';

// The verdicts of the scripts on a claim.
export const HELD = 0;
export const GRANTED = 1;
export const DONE = 2;
export const LATE = 3;
export const IN_LINE = 4;
export const QUARANTINE = 5;

export const tooLate = (): Refusal => ({
  granted: false,
  reason: 'unavailable',
  cause: new Error(CLAIM_TOO_LATE()),
});

/** Redis counts whole milliseconds; up, so that a claim never ends before the holder thinks it does. */
export const ms = (value: number): number => Math.ceil(value);

/** As the scripts have them: see lua/parts/record.lua. */
export const wireTtl = (ttl: number): string => String(ms(ttl)).padStart(12, '0');

export const micros = (milliseconds: number): string => `${milliseconds}000`;

/** As our scripts write one: in 16 digits, see lua/parts/clock.lua. */
export const isFence = (text: unknown): boolean =>
  typeof text === 'string' && /^\d{16}$/.test(text);

export const isDigits = (text: unknown): boolean =>
  typeof text === 'string' && /^\d{1,16}$/.test(text);

/** Somebody who waits for an answer. */
export interface Promised<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export function rejectAll(requests: readonly Promised<never>[], command: string): void {
  for (const { reject } of requests) reject(new Error(BAD_REPLY(command)));
}

/**
 * Whole numbers and nothing else, or nothing at all: on an answer that our scripts cannot have given, nothing is granted
 * or lost.
 */
export function figures(reply: unknown): number[] | undefined {
  if (!Array.isArray(reply) || reply.length === 0) return undefined;
  const numbers = reply.map((figure) => (isFence(figure) ? Number(figure) : (figure as number)));
  return numbers.every(Number.isSafeInteger) ? numbers : undefined;
}
