import { realProcess } from '../support/real-process.js';
import { Violation } from './invariants.js';
import { scenarioFrom, type Mode, type Scenario } from './scenario.js';
import { simulate, type Report } from './simulated-world.js';

export interface Found {
  readonly seed: number;
  readonly mode: Mode;
  readonly violation: Violation;
  readonly scenario: Scenario;
}

/** A run of which nothing escapes: a rejection that nobody handles is a violation too (rule 12). */
export async function simulateWatched(scenario: Scenario): Promise<Report> {
  let escaped: unknown;
  const onUnhandled = (reason: unknown): void => {
    escaped ??= new Violation(12, `an unhandled rejection: ${String(reason)}`, NaN);
  };
  realProcess.on('unhandledRejection', onUnhandled);
  try {
    const report = await simulate(scenario);
    return { ...report, violation: report.violation ?? (escaped as Violation | undefined) };
  } finally {
    realProcess.off('unhandledRejection', onUnhandled);
  }
}

/** Tries seed after seed until a rule is broken, the seeds run out or `isOver` says so. */
export async function explore(options: {
  readonly from: number;
  readonly seeds: number;
  readonly mode?: Mode;
  readonly isOver?: () => boolean;
  readonly onReport?: (report: Report, seed: number) => void;
}): Promise<{ readonly tried: number; readonly found: Found | undefined }> {
  const { from, seeds, mode = 'kept', isOver = () => false, onReport } = options;
  let tried = 0;
  while (tried < seeds && !isOver()) {
    const seed = from + tried++;
    const scenario = scenarioFrom(seed, mode);
    const report = await simulateWatched(scenario);
    onReport?.(report, seed);
    const { violation } = report;
    if (violation) return { tried, found: { seed, mode, violation, scenario } };
  }
  return { tried, found: undefined };
}

/** Leaves out whatever the violation does not need, as long as the same rule is still broken. */
export async function minimise({ scenario, violation }: Found): Promise<Scenario> {
  let least = scenario;
  const stillFails = async (candidate: Scenario): Promise<boolean> => {
    if ((await simulateWatched(candidate)).violation?.rule !== violation.rule) return false;
    least = candidate;
    return true;
  };
  for (let progress = true; progress;) {
    progress = false;
    for (const candidate of simpler(least)) {
      if (await stillFails(candidate)) {
        progress = true;
        break;
      }
    }
  }
  return least;
}

function* simpler(scenario: Scenario): Iterable<Scenario> {
  const { steps, network, processes } = scenario;
  for (let i = steps.length - 1; i >= 0; i--) yield { ...scenario, steps: steps.toSpliced(i, 1) };
  for (const name of ['tail', 'requestLost', 'replyLost', 'duplicated', 'reset'] as const) {
    if (network[name] > 0) yield { ...scenario, network: { ...network, [name]: 0 } };
  }
  if (network.callLate) yield { ...scenario, network: { ...network, callLate: 0 } };
  if (scenario.line) yield { ...scenario, line: false };
  if (scenario.push) yield { ...scenario, push: false };
  if (processes.length > 1) yield { ...scenario, processes: processes.slice(1) };
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i]!;
    const { what } = step;
    if (!('deeds' in what)) continue;
    const put = (smaller: typeof what): Scenario => ({
      ...scenario,
      steps: steps.with(i, { ...step, what: smaller } as typeof step),
    });
    for (let j = what.deeds.length - 1; j >= 0; j--) {
      yield put({ ...what, deeds: what.deeds.toSpliced(j, 1) });
    }
    for (const option of [
      'abortAfter',
      'renew',
      'minHold',
      'maxHold',
      'once',
      'alone',
      'awaitRelease',
    ] as const) {
      if (what[option] === undefined) continue;
      const { [option]: _, ...without } = what;
      yield put(without);
    }
    if (what.keys.length > 1) yield put({ ...what, keys: what.keys.slice(0, 1) });
    if (what.ending !== 'release') yield put({ ...what, ending: 'release' });
  }
}

/** What a person needs who sees it fail. */
export const describeFound = (found: Found): string =>
  `seed ${found.seed}: ${found.violation.message}\nagain: ${replayCommand(found)}`;

/** How to see it again. */
export const replayCommand = ({ seed, mode }: Pick<Found, 'seed' | 'mode'>): string =>
  `node test/simulation/run.mjs --seed ${seed} --mode ${mode}`;
