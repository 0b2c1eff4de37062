import { now, sleep } from '../harness/clock.mjs';

let asked;
let toldAt;

/** Takes a key and keeps it. The trouble comes afterwards, from the parent. */
export async function takeOne({ cycle, hold }, { ttl }) {
  await cycle('connected');
  asked = now();
  await hold('told', ttl, () => (toldAt ??= now()));
  return {};
}

/** When its holder was told that it is lost: milliseconds after asking for it, or nothing. */
export async function told(_, { patienceMs }) {
  const until = asked + patienceMs * 1e3;
  for (;;) {
    if (toldAt !== undefined) return { afterMs: (toldAt - asked) / 1e3 };
    if (now() > until) return {};
    await sleep(10);
  }
}
