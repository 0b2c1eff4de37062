import { now, turnFor } from '../harness/clock.mjs';

const AT_A_TIME = 10;

/** One after the other, as fast as they go. */
export async function cycles({ cycle }, { key, ms }) {
  const start = now();
  const until = start + ms * 1e3;
  let count = 0;
  do {
    for (let i = 0; i < AT_A_TIME; i++) await cycle(key);
    count += AT_A_TIME;
  } while (now() < until);
  return { count, us: now() - start };
}

/** The same, with the processor time that it takes. */
export async function cyclesProfiled(contestant, params) {
  const before = process.cpuUsage();
  const figures = await cycles(contestant, params);
  return { ...figures, ...process.cpuUsage(before) };
}

/** Only the time in which the caller waits: what it left to be done meanwhile has time to end before the next. */
export async function callerWaits({ cycle }, { key, ms, gap = 300 }) {
  const until = now() + ms * 1e3;
  let count = 0;
  let us = 0;
  do {
    const start = now();
    await cycle(key);
    us += now() - start;
    count++;
    await turnFor(gap);
  } while (now() < until);
  return { count, us };
}

/** Many keys at once, each in a loop of its own. */
export async function cyclesOnManyKeys({ cycle }, { key, keys, ms }) {
  const start = now();
  const until = start + ms * 1e3;
  let count = 0;
  const loop = async (own) => {
    while (now() < until) {
      await cycle(own);
      count++;
    }
  };
  await Promise.all(Array.from({ length: keys }, (_, i) => loop(`${key}:${i}`)));
  return { count, us: now() - start };
}
