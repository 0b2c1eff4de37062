import { nextTick, now, reach, sleep } from '../harness/clock.mjs';

/**
 * Waiters that want the same key, each a given number of times, in as many processes as are told the same. Every
 * turn is written down: when it began to wait, when its work began, when its work ended.
 *
 * The work is one turn of the event loop: long enough that two holders at once are seen.
 */
export async function waiters({ turn }, { key, waiters, turnsEach, startAt, pauseMs, capMs }) {
  const turns = [];
  let isOver = false;

  const waiter = async () => {
    for (let i = 0; i < turnsEach; i++) {
      if (isOver) return;
      const asked = now();
      await turn(key, async () => {
        // A wait that ends after the round was called off is nobody's turn.
        if (isOver) return;
        const began = now();
        await nextTick();
        turns.push(asked, began, now());
      });
      if (pauseMs) await sleep(pauseMs[0] + Math.random() * (pauseMs[1] - pauseMs[0]));
    }
  };

  await reach(startAt);
  const all = Promise.all(Array.from({ length: waiters }, waiter));
  let cap;
  const isCapped = new Promise((resolve) => (cap = setTimeout(resolve, capMs)));
  await Promise.race([all, isCapped]);
  clearTimeout(cap);
  isOver = true;
  all.catch(() => {});
  return {
    turns: Float64Array.from(turns),
    untaken: waiters * turnsEach - turns.length / 3,
    until: now(),
  };
}
