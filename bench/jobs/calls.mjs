import { now } from '../harness/clock.mjs';

/** One of the ways to call a method, over and over. */
export async function calls({ ways }, { way, ms, atATime = 100 }) {
  const call = ways[way];
  const start = now();
  const until = start + ms * 1e3;
  let count = 0;
  do {
    for (let i = 0; i < atATime; i++) await call();
    count += atATime;
  } while (now() < until);
  return { count, us: now() - start };
}
