import { OURS } from '../contestants/index.mjs';
import { decimal, percent, whole } from './format.mjs';
import { reasonFor } from './reasons.mjs';

/** Everything in which a peer can be better than we are: whose figures, and which way is better. */
const comparisons = (results) => [
  timed('one caller, one core', results.sequential?.pinned),
  timed('one caller, any core', results.sequential?.free),
  {
    what: '100 keys at once',
    rows: results['hundred-keys'],
    figure: ({ ratio }) => ratio.median,
    spreadOf: ({ ratio }) => ratio,
    isMoreBetter: true,
  },
  timed('20 waiters, 1 process, one core', results.waiters?.onePinned),
  timed('20 waiters, 1 process', results.waiters?.one),
  timed('20 waiters, 1 process, paused', results.waiters?.onePaused),
  timed('20 waiters, 4 processes', results.waiters?.four),
  timed('20 waiters, 4 processes, paused', results.waiters?.fourPaused),
  waited('wait p99 of 20 waiters, 1 process', results.waiters?.one),
  waited('wait p99 of 20 waiters, 4 processes', results.waiters?.four),
  ...[1_000, 10_000].flatMap((keys) => {
    const rows = results.holding?.filter((row) => row.keys === keys);
    return [
      { what: `CPU of ${keys} held leases`, rows, figure: ({ cpu }) => cpu, write: percent },
      {
        what: `bytes each of ${keys} held leases`,
        rows,
        figure: ({ bytesEach }) => bytesEach,
        write: whole,
      },
    ];
  }),
  toldIn('told of a frozen Redis, ms', results.told, 'frozen'),
  toldIn('told of a deleted key, ms', results.told, 'stolen'),
];

const timed = (what, rows) => ({
  what,
  rows,
  figure: ({ ratio }) => ratio.median,
  spreadOf: ({ ratio }) => ratio,
});

const waited = (what, rows) => ({
  what,
  // Who does not serve all has no longest wait.
  rows: rows?.filter(({ untaken }) => !untaken),
  figure: ({ waitP99Ratio }) => waitP99Ratio.median,
  spreadOf: ({ waitP99Ratio }) => waitP99Ratio,
});

const toldIn = (what, rows, trouble) => ({
  what,
  rows,
  figure: (row) => row[trouble].afterMs ?? Number.POSITIVE_INFINITY,
  write: whole,
});

/** Where a peer is ahead of us, in the words of the report. */
export function peersAhead(results) {
  return comparisons(results).flatMap(
    ({ what, rows = [], figure, spreadOf, isMoreBetter, write = decimal }) => {
      const ours = rows.find(({ name }) => name === OURS.run) ?? rows.find(isOurs);
      if (!ours) return [];
      const isBetter = (peer) =>
        isMoreBetter ? figure(peer) > figure(ours) : figure(peer) < figure(ours);
      return rows
        .filter((row) => row.kind === 'peer' && isBetter(row))
        .map((peer) => ({
          what,
          peer: peer.name,
          theirs: write(figure(peer)),
          ours: write(figure(ours)),
          isClear: !spreadOf || areApart(spreadOf(peer), spreadOf(ours)),
          why: reasonFor(peer.name, what),
        }));
    },
  );
}

const isOurs = ({ kind }) => kind === 'ours';

const areApart = (a, b) => a.p90 < b.p10 || b.p90 < a.p10;
