import { setTimeout } from 'node:timers/promises';

/** A moment for whoever watches. Nothing that is checked depends on its length. */
export const aMoment = (ms = 600): Promise<void> => setTimeout(ms);

/** Waits until it is so; says whether it came to be. */
export async function until(isSo: () => boolean, atMost = 10_000): Promise<boolean> {
  const deadline = performance.now() + atMost;
  while (!isSo() && performance.now() < deadline) await setTimeout(10);
  return isSo();
}

export const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
