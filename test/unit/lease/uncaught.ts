import { setTimeout } from 'node:timers/promises';
import { realProcess } from '../../support/real-process.js';

/** Runs something in which user code throws in a listener, and gives what would have reached the process. */
export async function swallowUncaught(act: () => Promise<void>): Promise<unknown[]> {
  const others = realProcess.listeners('uncaughtException');
  const thrown: unknown[] = [];
  const swallow = (error: unknown): void => void thrown.push(error);
  realProcess.removeAllListeners('uncaughtException');
  realProcess.on('uncaughtException', swallow);
  try {
    await act();
    // rxjs reports in a timer, Node in the next tick.
    await setTimeout(5);
  } finally {
    realProcess.off('uncaughtException', swallow);
    for (const listener of others) realProcess.on('uncaughtException', listener);
  }
  return thrown;
}
