import { OURS } from '../contestants/index.mjs';
import { decimal, microseconds, percent, whole } from './format.mjs';

/** The targets that the library set itself, each with the figures of this run: the verdict is theirs. */
export function targets(results) {
  const row = (rows, name) => rows?.find((one) => one.name === name);
  const sequential = (variant, name) => row(results.sequential?.[variant], name)?.ratio;
  const keys = (name) => row(results['hundred-keys'], name)?.ratio;
  const waiting = (variant) => row(results.waiters?.[variant], OURS.run);
  const holding = results.holding?.find(
    ({ name, keys }) => name === OURS.byHand && keys === 10_000,
  );
  const decorated = row(results.decorator, '@WithLease(key)')?.added;
  const guarded = (table, name) => row(results.fences?.[table], name)?.time.ratio;
  const FLOOR = 'against raw SET NX + EVALSHA';
  const QUEUE = 'against a raw push-woken fenced queue';

  return [
    atMost(1.1, sequential('pinned', OURS.byHand), `acquire + release, fenced, one core, ${FLOOR}`),
    atMost(1.1, sequential('free', OURS.byHand), `the same, any core`),
    atMost(
      0.75,
      sequential('callerPinned', OURS.run),
      'what the caller of run() waits for, one core',
    ),
    atMost(0.75, sequential('callerFree', OURS.run), 'the same, any core'),
    atLeast(1, keys(OURS.byHand), `100 keys at once, acquire + release, throughput ${FLOOR}`),
    atLeast(1, keys(OURS.run), 'the same, run()'),
    atMost(
      0.95,
      waiting('onePinned')?.ratio,
      `20 waiters, 1 process, one core, time per turn ${QUEUE}`,
    ),
    atMost(0.95, waiting('one')?.ratio, 'the same, any core'),
    atMost(
      0.95,
      waiting('onePaused')?.ratio,
      'the same, with a pause between turns, which is what takes the time',
    ),
    atMost(1.3, waiting('one')?.commandsPerTurn, '20 waiters, 1 process, commands per acquisition'),
    atMost(1.3, waiting('onePaused')?.commandsPerTurn, 'the same, with a pause between turns'),
    ...['four', 'fourPaused'].flatMap((variant) => {
      const paused = variant === 'four' ? '' : ', with a pause between turns';
      const ours = waiting(variant);
      const floor = results.waiters?.[variant].find(({ kind }) => kind === 'floor');
      return [
        atMost(1, ours?.ratio, `20 waiters, 4 processes, time per turn ${QUEUE}${paused}`),
        atMost(1, ours?.waitP99Ratio, `their wait p99 against the same${paused}`),
        atMost(
          0,
          ours?.barged,
          `no barging: waiters that had asked more than a turn earlier and were overtaken, at most in a round (in the worst: ${whole(ours?.bargedMax)}); the floor’s is ${whole(floor?.barged.median)}${paused}`,
          whole,
        ),
      ];
    }),
    atMost(5, decorated, 'µs that @WithLease adds to a call, memory store', microseconds),
    atMost(1.5, guarded('redis', 'gate.set()'), 'a guarded SET against a plain one'),
    atMost(1.5, guarded('redis', 'gate.hset()'), 'a guarded HSET against a plain one'),
    atMost(
      1.5,
      guarded('postgres', 'the same and gate.admitIn()'),
      'a transaction of one UPDATE with admitIn() against one without, waiting for the disk',
    ),
    atMost(
      1.1,
      guarded('postgres', 'UPDATE with fenceColumn()'),
      'an UPDATE with fenceColumn() against one without, waiting for the disk',
    ),
    atMost(0, holding?.lost, '10,000 leases at ttl 10 s: lost', whole),
    atMost(0.1, holding?.cpu, '10,000 leases: share of one core', percent),
    atMost(2_048, holding?.bytesEach, '10,000 leases: bytes each', whole),
  ];
}

const atMost = (bound, measured, what, write = decimal) =>
  line('≤', (figure) => figure <= bound, { bound, measured, what, write });

const atLeast = (bound, measured, what, write = decimal) =>
  line('≥', (figure) => figure >= bound, { bound, measured, what, write });

/** Judged by the median; where the rounds do not agree with each other about it, it says so. */
function line(sign, isMet, { bound, measured, what, write }) {
  const {
    median: figure,
    p10,
    p90,
  } = measured?.median === undefined ? { median: measured } : measured;
  const hasSpread = Number.isFinite(p10);
  const isSplit = hasSpread && isMet(p10) !== isMet(p90);
  const verdict = `${isMet(figure) ? 'met' : '**not met**'}${isSplit ? ', within the spread' : ''}`;
  return {
    what,
    target: `${sign} ${write(bound)}`,
    figure: write(figure),
    spread: hasSpread ? `${write(p10)}–${write(p90)}` : '–',
    verdict: Number.isFinite(figure) ? verdict : 'not measured',
  };
}
