import { Chance } from './chance.js';
import type { NetworkProfile } from './simulated-store.js';

/** What a holder does with its lease, `after` ms of its own clock since the last thing it did. */
export interface Deed {
  readonly after: number;
  readonly act: 'look' | 'renew' | 'renew-longer' | 'renew-shorter' | 'enter' | 'enter-more';
}

export interface Take {
  readonly do: 'try' | 'acquire' | 'run';
  readonly keys: readonly number[];
  readonly ttl: number;
  readonly wait: number;
  readonly abortAfter?: number;
  readonly renew?: boolean;
  readonly minHold?: number;
  readonly maxHold?: number;
  readonly once?: string;
  readonly remember?: number;
  /** Claims a key that others share for itself alone. */
  readonly alone?: boolean;
  readonly awaitRelease?: boolean;
  readonly deeds: readonly Deed[];
  readonly ending: 'release' | 'release-twice' | 'throw' | 'forget' | 'ignore-loss';
}

export type Fault =
  | { readonly do: 'pause' | 'suspend' | 'cut-off'; readonly ms: number }
  | { readonly do: 'step-wall'; readonly ms: number }
  | { readonly do: 'crash' }
  | { readonly do: 'close'; readonly grace: number; readonly stopGrace: number };

export type ServerFault =
  | { readonly do: 'freeze' | 'restart' | 'restart-empty'; readonly ms: number }
  | { readonly do: 'fail-over'; readonly lag: number }
  | { readonly do: 'clear'; readonly key: number };

type Cause =
  | { readonly process: number; readonly what: Take | Fault }
  | { readonly process?: undefined; readonly what: ServerFault };

export type Step = { readonly at: number } & Cause;

/** A whole run, as data: made from a seed or by hand, printed, and cut down to what matters when it fails. */
export interface Scenario {
  /** For everything the steps do not say: latencies, jitter, lags. */
  readonly seed: number;
  readonly processes: readonly { readonly rate: number; readonly offset: number }[];
  readonly serverRate: number;
  /** For each key, how many may hold it. */
  readonly keys: readonly number[];
  readonly network: NetworkProfile;
  readonly push: boolean;
  /** Whether all processes wait in one line at the store. */
  readonly line?: boolean;
  readonly steps: readonly Step[];
}

/**
 * `kept`: the store keeps its promises, except where a step says that it is wiped or cleared. `failover`: a
 * replica that lags may take over, and the store forgets what it promised.
 */
export type Mode = 'kept' | 'failover';

const TTLS = [60, 150, 300, 900];
const LENGTH = 1_500;

export function scenarioFrom(seed: number, mode: Mode = 'kept'): Scenario {
  const chance = new Chance(seed);
  const small = chance.is(0.4);
  const processes = Array.from({ length: chance.whole(small ? 1 : 2, small ? 2 : 4) }, () => ({
    rate: chance.is(0.3) ? chance.pick([0.99, 1.01]) : chance.between(0.99, 1.01),
    offset: chance.between(0, 1e6),
  }));
  const keys = Array.from({ length: small ? 1 : chance.whole(1, 3) }, () =>
    chance.is(0.7) ? 1 : chance.whole(2, 3),
  );
  const ttls = chance.is(0.5) ? [chance.pick(TTLS)] : TTLS;
  // Wall clocks that are set back hide a suspension: two faults at once that no holder can see through.
  const clockTrouble = chance.pick(['suspend', 'step-wall'] as const);
  // Where nothing is lost, more can be said of how waiting goes on.
  const trouble = chance.pick([
    'none',
    'none',
    'none',
    'late',
    'all',
    'all',
    'all',
    'all',
  ] as const);
  const faulty = trouble === 'all';
  const fault = (most: number, isLoss = true): number =>
    (faulty || (trouble === 'late' && !isLoss)) && chance.is(0.5) ? chance.between(0, most) : 0;
  const network: NetworkProfile = {
    latency: chance.pick([0.3, 1, 5]),
    tail: fault(0.15, false),
    tailMs: chance.pick([20, 100, 400]),
    requestLost: fault(0.15),
    replyLost: fault(0.15),
    duplicated: fault(faulty ? 0.1 : 0.5, false),
    reset: fault(0.1),
    callLate: fault(0.9, false),
  };
  const context: Context = { chance, keys, ttls, clockTrouble, mode, processes: processes.length };
  const steps: Step[] = [];
  for (let count = small ? chance.whole(2, 6) : chance.whole(4, 16); count > 0; count--) {
    const at = Math.round(chance.between(0, LENGTH));
    if (faulty && chance.is(0.25)) steps.push({ at, ...aFault(context) });
    else steps.push({ at, process: chance.whole(0, processes.length - 1), what: aTake(context) });
  }
  if (chance.is(0.5)) steps.push(...aCrowd(context));
  steps.sort((a, b) => a.at - b.at);
  const push = chance.is(0.5);
  const serverRate = chance.between(0.99, 1.01);
  const line = chance.is(0.6);
  return { seed, processes, serverRate, keys, network, push, line, steps };
}

/** Every message arrives once, in a time that is not out of the common, and nobody sleeps, dies or forgets. */
export const isUntroubled = (scenario: Scenario): boolean => {
  const { tail, duplicated, callLate = 0 } = scenario.network;
  return isDelivered(scenario) && tail + duplicated + callLate === 0;
};

/** Every message arrives, if late, twice or out of order, and nobody sleeps, dies or forgets. */
export const isDelivered = ({ network, steps }: Scenario): boolean =>
  network.requestLost + network.replyLost + network.reset === 0 &&
  steps.every(({ what }) => 'deeds' in what || what.do === 'close');

interface Context {
  readonly chance: Chance;
  readonly keys: readonly number[];
  readonly ttls: readonly number[];
  readonly clockTrouble: 'suspend' | 'step-wall';
  readonly mode: Mode;
  readonly processes: number;
}

/** Most of the others find their key free: these come for one key, nearly at once, and wait their turn. */
function aCrowd(context: Context): Step[] {
  const { chance, keys, processes } = context;
  const from = chance.between(0, LENGTH / 2);
  const during = chance.pick([5, 50, 300]);
  const key = chance.whole(0, keys.length - 1);
  const homes = chance.whole(1, processes);
  return Array.from({ length: chance.whole(3, 8) }, (): Step => {
    const { minHold: _, abortAfter: __, ...take } = aTake(context);
    const what: Take = {
      ...take,
      do: chance.pick(['acquire', 'run']),
      keys: [key],
      wait: chance.pick([2 * take.ttl, 1_500]),
      deeds: [{ after: chance.between(0, chance.pick([5, 20, 80])), act: 'look' }],
      ending: chance.is(0.9) ? 'release' : take.ending,
      // What is believed of a call shows when no renewal adds to it.
      ...(chance.is(0.3) ? { renew: false, deeds: [{ after: take.ttl, act: 'look' }] } : {}),
      ...(chance.is(0.3) ? { abortAfter: Math.round(chance.between(0, 150)) } : {}),
    };
    return {
      at: Math.round(chance.between(from, from + during)),
      process: chance.whole(0, homes - 1),
      what,
    };
  });
}

function aTake({ chance, keys, ttls }: Context): Take {
  const ttl = chance.pick(ttls);
  const several = keys.length > 1 && chance.is(0.2);
  const kind = chance.pick(['try', 'acquire', 'run', 'run'] as const);
  const rarely = <T extends object>(probability: number, extra: () => T): T | object =>
    chance.is(probability) ? extra() : {};
  const around = (most: number): number => Math.round(chance.between(0, most));
  return {
    do: kind,
    keys: several ? keys.map((_, i) => i) : [chance.whole(0, keys.length - 1)],
    ttl,
    wait: kind === 'try' ? 0 : chance.pick([0, 5, ttl / 2, 2 * ttl, 1_500]),
    ...rarely(0.2, () => ({ abortAfter: around(ttl) })),
    ...rarely(0.15, () => ({ renew: false })),
    ...rarely(0.15, () => ({ minHold: 1 + around(2 * ttl) })),
    ...rarely(0.15, () => ({ maxHold: 1 + around(3 * ttl) })),
    ...rarely(0.2, () => ({
      once: chance.pick(['a', 'b']),
      ...rarely(0.5, () => ({ remember: 1 + around(2_000) })),
    })),
    ...rarely(0.1, () => ({ alone: true })),
    ...rarely(0.2, () => ({ awaitRelease: true })),
    deeds: Array.from({ length: chance.whole(1, 4) }, () => ({
      after: chance.is(0.2) ? 0 : around(ttl),
      act: chance.pick([
        'look',
        'look',
        'look',
        'renew',
        'renew-longer',
        'renew-shorter',
        'enter',
        'enter-more',
      ] as const),
    })),
    ending: chance.pick([
      'release',
      'release',
      'release-twice',
      'throw',
      'forget',
      'ignore-loss',
    ] as const),
  };
}

function aFault({ chance, keys, clockTrouble, mode, processes }: Context): Cause {
  const process = chance.whole(0, processes - 1);
  const ms = Math.round(chance.is(0.5) ? chance.between(0, 100) : chance.between(0, 1_200));
  switch (chance.pick(['pause', 'pause', 'clock', 'cut-off', 'end', 'server', 'server'] as const)) {
    case 'pause':
      return { process, what: { do: 'pause', ms } };
    case 'clock':
      return clockTrouble === 'suspend'
        ? { process, what: { do: 'suspend', ms } }
        : { process, what: { do: 'step-wall', ms: chance.pick([-1, 1]) * ms * 10 } };
    case 'cut-off':
      return { process, what: { do: 'cut-off', ms } };
    case 'end':
      if (chance.is(0.3)) return { process, what: { do: 'crash' } };
      return {
        process,
        what: { do: 'close', grace: chance.pick([0, 50, 500]), stopGrace: chance.pick([0, 100]) },
      };
    default: {
      const kinds = ['freeze', 'freeze', 'restart', 'restart-empty', 'clear'] as const;
      const kind =
        mode === 'failover' && chance.is(0.7) ? ('fail-over' as const) : chance.pick(kinds);
      if (kind === 'fail-over') return { what: { do: kind, lag: chance.pick([0, 5, 50, 400]) } };
      if (kind === 'clear') return { what: { do: kind, key: chance.whole(0, keys.length - 1) } };
      return { what: { do: kind, ms } };
    }
  }
}
