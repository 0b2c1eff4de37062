import { now, sleep } from '../harness/clock.mjs';

const AT_A_TIME = 500;
const SAMPLE = 200;

let held = [];
let lost = 0;

/** Takes so many keys and keeps them; says what each of them costs in memory. */
export async function takeMany({ hold }, { key, keys, ttl }) {
  // Once before, so that what is made at the first time is not counted.
  await (await hold(`${key}:first`, ttl, onLost)).release();
  const before = await heapUsed();
  const start = now();
  while (held.length < keys) {
    const size = Math.min(AT_A_TIME, keys - held.length);
    const from = held.length;
    const more = Array.from({ length: size }, (_, i) => hold(`${key}:${from + i}`, ttl, onLost));
    held.push(...(await Promise.all(more)));
  }
  const ms = (now() - start) / 1e3;
  return { ms, bytesEach: ((await heapUsed()) - before) / keys };
}

/** Holds them for a while; says how many were lost, and how near to its end any of those looked at came. */
export async function keepHolding(_, { seconds }) {
  const until = now() + seconds * 1e6;
  let leastMs = Number.POSITIVE_INFINITY;
  while (now() < until) {
    await sleep(100);
    if (held[0].remaining === undefined) continue;
    for (let i = 0; i < SAMPLE; i++) {
      const one = held[Math.floor(Math.random() * held.length)];
      leastMs = Math.min(leastMs, one.remaining);
    }
  }
  return { lost, leastMs };
}

export async function letGo() {
  await Promise.allSettled(held.map((one) => one.release()));
  held = [];
  return {};
}

const onLost = () => lost++;

async function heapUsed() {
  for (let i = 0; i < 3; i++) {
    await sleep(20);
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
}
