import { inspect } from 'node:util';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach } from '@jest/globals';
import { realProcess } from './real-process.js';

/**
 * Rule 12. Jest forgives a rejection that is handled late; a Node process dies of it. So here it fails the test
 * in which it was seen, or the file when no test was running.
 */
const escaped: string[] = [];

const onUnhandledRejection = (reason: unknown): void => {
  escaped.push(`unhandledRejection: ${inspect(reason)}`);
};
const onUncaughtException = (error: unknown): void => {
  escaped.push(`uncaughtException: ${inspect(error)}`);
};

realProcess.on('unhandledRejection', onUnhandledRejection);
realProcess.on('uncaughtException', onUncaughtException);

async function failIfEscaped(): Promise<void> {
  // Node reports a rejection after the microtasks that follow it. Not the global timer: a test may have faked it.
  await setImmediate();
  const errors = escaped.splice(0);
  if (errors.length > 0) throw new Error(`Escaped from the code under test:\n${errors.join('\n')}`);
}

afterEach(failIfEscaped);
afterAll(async () => {
  try {
    await failIfEscaped();
  } finally {
    realProcess.off('unhandledRejection', onUnhandledRejection);
    realProcess.off('uncaughtException', onUncaughtException);
  }
});
