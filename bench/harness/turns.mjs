import { mean, quantile, sum } from './statistics.mjs';

/**
 * @typedef {object} Turn
 * @property {number} process
 * @property {number} asked when it began to wait
 * @property {number} began when its work began
 * @property {number} ended when its work ended
 */

/**
 * The turns of all processes, in the order in which they began.
 *
 * @param {readonly { turns: Float64Array }[]} reports one per process
 * @returns {Turn[]}
 */
export function inOrder(reports) {
  const all = reports.flatMap(({ turns }, process) =>
    Array.from({ length: turns.length / 3 }, (_, i) => ({
      process,
      asked: turns[3 * i],
      began: turns[3 * i + 1],
      ended: turns[3 * i + 2],
    })),
  );
  return all.toSorted((a, b) => a.began - b.began);
}

/** How many began before somebody else had ended. With a lock that locks there is none. */
export function overlaps(turns) {
  let count = 0;
  let lastEnd = Number.NEGATIVE_INFINITY;
  for (const { began, ended } of turns) {
    if (began < lastEnd) count++;
    lastEnd = Math.max(lastEnd, ended);
  }
  return count;
}

/** From the end of one's work to the beginning of the next one's, where that one was waiting by then. */
export function handOffs(turns) {
  const gaps = [];
  for (let i = 1; i < turns.length; i++) {
    if (turns[i].asked < turns[i - 1].ended) gaps.push(turns[i].began - turns[i - 1].ended);
  }
  return gaps;
}

/**
 * For every turn: how many had begun to wait earlier, by more than `head start`, and were still waiting when it began.
 * They were overtaken. Counted from the last turn back, with a tree of those that came later, by when they asked.
 */
export function overtaken(turns, headStart = 0) {
  const asked = turns.map((turn) => turn.asked).toSorted((a, b) => a - b);
  const tree = new Uint32Array(turns.length + 1);
  return turns.toReversed().map((turn) => {
    let earlier = 0;
    for (let i = countBelow(asked, turn.asked - headStart); i > 0; i -= i & -i) earlier += tree[i];
    for (let i = countBelow(asked, turn.asked) + 1; i <= turns.length; i += i & -i) tree[i]++;
    return earlier;
  });
}

function countBelow(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Turns of the process that had the fewest over those of the one that had the most, when half of all were taken:
 * in the end everybody has had the same number.
 */
export function fairness(turns, processes) {
  const had = Array.from({ length: processes }, () => 0);
  for (const { process } of turns.slice(0, turns.length / 2)) had[process]++;
  return Math.min(...had) / Math.max(...had);
}

/** The figures of one round. */
export function figuresOf(reports, startAt) {
  const turns = inOrder(reports);
  const untaken = sum(reports.map((report) => report.untaken));
  // A round that was called off has lasted until then.
  const end = Math.max(...(untaken > 0 ? reports : turns).map((last) => last.until ?? last.ended));
  const waits = turns.map(({ asked, began }) => began - asked);
  const gaps = handOffs(turns);
  const usPerTurn = (end - startAt) / Math.max(turns.length, 1);
  const overtook = overtaken(turns);
  const barged = overtaken(turns, usPerTurn);
  const overtookOwn = reports.flatMap((report) => overtaken(inOrder([report])));
  const commands = sum(reports.map((report) => report.commands));
  return {
    turns: turns.length,
    untaken,
    usPerTurn,
    commandsPerTurn: commands / Math.max(turns.length, 1),
    waitP50: quantile(waits, 0.5),
    waitP99: quantile(waits, 0.99),
    gapP50: quantile(gaps, 0.5),
    gapP99: quantile(gaps, 0.99),
    overtookMean: overtook.length ? mean(overtook) : 0,
    overtookMax: Math.max(0, ...overtook),
    bargedMax: Math.max(0, ...barged),
    overtookOwnMax: Math.max(0, ...overtookOwn),
    fairness: fairness(turns, reports.length),
    overlaps: overlaps(turns),
  };
}
