import { now } from '../harness/clock.mjs';

const AT_A_TIME = 100;

/** One of the ways to call a method, over and over. */
export async function calls({ ways }, { way, ms }) {
  const call = ways[way];
  const start = now();
  const until = start + ms * 1e3;
  let count = 0;
  do {
    for (let i = 0; i < AT_A_TIME; i++) await call();
    count += AT_A_TIME;
  } while (now() < until);
  return { count, us: now() - start };
}
