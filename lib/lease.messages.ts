/** Every sentence a person may read. An error says what happened, to which key, and what can be done. */

const show = (value: unknown): string => {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null) return `an ${Array.isArray(value) ? 'array' : 'object'}`;
  return String(value);
};

// — input

export const BAD_DURATION = (option: string, value: unknown): string =>
  `"${option}" is ${show(value)}; it must be a number of milliseconds or a number with a unit: '250ms', '10s', '5m', '2h', '1d'.`;

export const BAD_DURATION_RANGE = (option: string, value: unknown, min: number, max: number): string =>
  `"${option}" is ${show(value)}; it must be from ${min} ms to ${max} ms.`;

export const BAD_KEY = (what: string, key: unknown, why: string): string =>
  `The ${what} ${show(key)} ${why}. A ${what} is a string of 1 to 512 bytes without control characters.`;

export const EMPTY_KEYS = (): string => 'The list of keys is empty; name at least one key.';

export const BAD_NAMESPACE = (namespace: unknown): string =>
  `"namespace" is ${show(namespace)}; it must be 1 to 100 letters, digits and _ . : -`;

export const BAD_OPTION = (option: string, value: unknown, expected: string): string =>
  `"${option}" is ${show(value)}; it must be ${expected}.`;

export const BAD_OPTIONS = (value: unknown): string => `The options are ${show(value)}; they must be an object.`;

export const UNKNOWN_OPTION = (option: string, known: readonly string[]): string =>
  `There is no option "${option}". Options are: ${known.join(', ')}.`;

export const NO_PERMITS = (store: string): string =>
  `"permits" above 1 is not possible with the store "${store}".`;

export const ONCE_ON_REENTRY = (key: string, once: string): string =>
  `"${key}" is held by this very call already, so a new unit of work (once: ${show(once)}) cannot begin inside it. Use another key for it.`;

// — refusals and losses

export const LEASE_HELD = (key: string, retryAfterMs: number | undefined): string =>
  `"${key}" is held by somebody else${retryAfterMs === undefined ? '' : `; it can be free in ${retryAfterMs} ms`}.`;

export const LEASE_DONE = (key: string, once: string): string => `"${once}" of "${key}" is done already.`;

const WHY_LOST = {
  expired: 'it was not renewed in time',
  taken: 'the store says that it is not ours any more',
  suspended: 'the machine was suspended',
  'max-hold': 'it was held for as long as maxHold allows',
} as const;

export const LEASE_LOST = (key: string, reason: keyof typeof WHY_LOST | undefined): string =>
  `The lease on "${key}" is over: ${reason === undefined ? 'it was released' : WHY_LOST[reason]}. Stop, and do not write.`;

export const LEASE_STORE_UNAVAILABLE = (key: string, store: string): string =>
  `The ${store} lease store did not say whether "${key}" is free. Nothing was run.`;

export const NOT_LEADER = (group: string): string => `This instance does not lead "${group}".`;

export const STALE_FENCE = (resource: string, fence: number, highest: number): string =>
  `The fence ${fence} is stale: "${resource}" has seen ${highest}. Somebody else owns it by now.`;

// — the store

export const NO_ANSWER = (ms: number): string => `The lease store did not answer within ${Math.round(ms)} ms.`;

export const NO_TELLING = (store: string, answer: unknown): string =>
  `The ${store} lease store answered ${show(answer)}, from which nothing follows.`;

export const SLOW_GRANT = (ttl: number): string =>
  `The lease was granted so late that nothing of its ttl of ${ttl} ms could be trusted.`;

export const SHUTTING_DOWN = (): string => 'The application is shutting down.';
