/** Microseconds on the machine's monotonic clock: the same clock in every process, so that their times compare. */
export const now = () => Number(process.hrtime.bigint()) / 1e3;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const nextTick = () => new Promise((resolve) => setImmediate(resolve));

/** Lets the event loop turn, and answers come in, without the process going to sleep. */
export async function turnFor(us) {
  const until = now() + us;
  do await nextTick();
  while (now() < until);
}

/** To a moment of {@link now}: asleep until shortly before it, awake for the rest. */
export async function reach(moment) {
  const left = moment - now();
  if (left > 3_000) await sleep((left - 2_000) / 1e3);
  await turnFor(Math.max(0, moment - now()));
}
