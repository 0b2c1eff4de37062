// Not the globals, which a test may have faked.
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';

interface UntilOptions {
  /** Milliseconds; `within` is another name for it. */
  timeout?: number;
  within?: number;
  /** What is waited for, for the error message. */
  what?: string;
}

/** Waits for a condition and gives what it gave; says what never came. */
export async function until<T>(
  condition: () => T | Promise<T>,
  { within = 5_000, timeout = within, what = condition.toString() }: UntilOptions = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeout;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`Not within ${timeout} ms: ${what}`);
    await setTimeout(2);
  }
}
