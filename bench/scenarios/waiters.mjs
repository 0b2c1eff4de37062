import { FLOOR, OURS } from '../contestants/index.mjs';
import { now } from '../harness/clock.mjs';
import { pin, unpin } from '../harness/cores.mjs';
import { against, interleave } from '../harness/rounds.mjs';
import { median, spread, sum } from '../harness/statistics.mjs';
import { figuresOf } from '../harness/turns.mjs';
import { decimal, milliseconds, microseconds, ratio, whole } from '../report/format.mjs';

/** Who takes part in a quick run without being asked for. */
const IN_QUICK = [OURS.run, FLOOR.waiting];

const WAITERS = 20;
const PAUSE = [1, 3];

const VARIANTS = [
  { id: 'onePinned', processes: 1, isPinned: true, title: '1 process, on one core with Redis' },
  { id: 'one', processes: 1, title: '1 process, no pause' },
  { id: 'onePaused', processes: 1, pauseMs: PAUSE, title: '1 process, 1–3 ms between turns' },
  { id: 'four', processes: 4, title: '4 processes, no pause' },
  { id: 'fourPaused', processes: 4, pauseMs: PAUSE, title: '4 processes, 1–3 ms between turns' },
];

const WHOLE = { rounds: 13, warmup: 1, peersEvery: 6, turnsEach: 25, capMs: 1_200 };
const QUICK = { rounds: 3, warmup: 1, peersEvery: 3, turnsEach: 8, capMs: 300 };

export default {
  id: 'waiters',
  title: `${WAITERS} waiters for one key`,
  about:
    `${WAITERS} waiters, all in one process or ${WAITERS / 4} in each of 4, each take the same number of turns with one key. ` +
    'The time per turn is the time until all are done over all turns, so that nobody is fast by serving one ' +
    'waiter only; a round that takes too long is called off and its untaken turns are counted. A turn works for ' +
    'one turn of the event loop. The wait is from asking to the beginning of the work; the gap from the end of ' +
    'one’s work to the beginning of the work of the next, who was waiting. A waiter is overtaken when one that ' +
    'asked later, in any process, gets its turn first. Fairness is the turns of the process with the fewest over ' +
    'those of the one with the most, when half of all were taken. Waiters that pause for 2 ms after a turn ask, all ' +
    'together, once in 100 µs: whoever is faster than that waits for them. Peers take part in three of the rounds. A ' +
    'quick run has only run() and the floor.',

  async run(bench) {
    const plan = bench.plan(WHOLE, QUICK);
    const all = bench.entrants('waiting', FLOOR.waiting);
    const entrants = all
      // Four processes of each take their time to start and to warm up.
      .filter((one) => !bench.isQuick || IN_QUICK.includes(one.name) || bench.isAskedFor(one))
      .map((entrant) =>
        entrant.kind === 'peer' ? { ...entrant, every: plan.peersEvery } : entrant,
      );
    const redis = await bench.redis();
    const fleet = await bench.fleet(entrants, { port: redis.port }, 4);
    const measure = (entrant, variant) =>
      measureWaiters(fleet, entrant, { ...plan, waiters: WAITERS, ...variant });
    await bench.warmUp(fleet, entrants);
    await warmUpWaiting(fleet, entrants, 300);
    const result = {};
    for (const { id, processes, pauseMs, isPinned } of VARIANTS) {
      (isPinned ? pin : unpin)([redis.pid, ...fleet.pids]);
      const byName = await interleave(entrants, plan, (entrant, round) =>
        measure(entrant, { key: `${entrant.name}:${id}:${round}`, processes, pauseMs }),
      );
      result[id] = summary(byName, bench.rows);
      for (const { name, kind, overlaps } of result[id]) {
        if (overlaps > 0) bench.overlapped({ name, kind, overlaps, where: `${this.id}, ${id}` });
      }
    }
    return result;
  },

  tables: (result) =>
    VARIANTS.map(({ id, title }) => ({
      title,
      columns: [
        '',
        'µs per turn',
        '× floor',
        'p10–p90',
        'commands per turn',
        'gap p50 µs',
        'wait p50 ms',
        'wait p99 ms',
        'p99 × floor',
        'overtaken mean',
        'max',
        'max by more than a turn',
        'max in own process',
        'fairness',
        'overlaps',
        'untaken',
      ],
      rows: result[id].map((row) => [
        row.name,
        microseconds(row.value),
        ...ratio(row.ratio),
        decimal(row.commandsPerTurn),
        microseconds(row.gapP50),
        milliseconds(row.waitP50),
        milliseconds(row.waitP99),
        decimal(row.waitP99Ratio.median),
        decimal(row.overtookMean),
        whole(row.overtookMax),
        whole(row.bargedMax),
        whole(row.overtookOwnMax),
        decimal(row.fairness),
        whole(row.overlaps),
        whole(row.untaken),
      ]),
    })),
};

/** One round of one contestant: see jobs/waiters.mjs. */
export async function measureWaiters(fleet, entrant, { processes, ...round }) {
  const startAt = now() + 10_000;
  const params = { ...round, waiters: round.waiters / processes, startAt };
  const reports = await Promise.all(
    fleet
      .of(entrant)
      .slice(0, processes)
      .map((worker) => worker.do('waiters', fleet.opened(entrant), params)),
  );
  return figuresOf(reports, startAt);
}

/** Waiting is other code than having: every process lets waiters of its own queue for a while. Polls only sleep. */
async function warmUpWaiting(fleet, entrants, turnsEach) {
  for (const entrant of entrants.filter(({ kind }) => kind !== 'peer')) {
    const contended = (worker) => ({
      key: `${entrant.name}:waiting:${worker.pid}`,
      waiters: WAITERS,
      turnsEach,
      startAt: now(),
      capMs: 4_000,
    });
    await Promise.all(
      fleet
        .of(entrant)
        .map((worker) => worker.do('waiters', fleet.opened(entrant), contended(worker))),
    );
  }
}

function summary(byName, toRows) {
  const p99 = against(FLOOR.waiting, byName, ({ waitP99 }) => waitP99);
  const rows = toRows(against(FLOOR.waiting, byName, ({ usPerTurn }) => usPerTurn));
  return rows.map((row) => {
    const rounds = byName.get(row.name).filter(Boolean);
    const of = (reduce, figure) => reduce(rounds.map((round) => round[figure]));
    return {
      ...row,
      turns: of(sum, 'turns'),
      commandsPerTurn: of(median, 'commandsPerTurn'),
      gapP50: of(median, 'gapP50'),
      gapP99: of(median, 'gapP99'),
      waitP50: of(median, 'waitP50'),
      waitP99: of(median, 'waitP99'),
      waitP99Ratio: p99.get(row.name).ratio,
      overtookMean: of(median, 'overtookMean'),
      overtookMax: of((values) => Math.max(...values), 'overtookMax'),
      bargedMax: of((values) => Math.max(...values), 'bargedMax'),
      barged: of(spread, 'bargedMax'),
      overtookOwnMax: of((values) => Math.max(...values), 'overtookOwnMax'),
      fairness: of(median, 'fairness'),
      overlaps: of(sum, 'overlaps'),
      untaken: of(sum, 'untaken'),
    };
  });
}
