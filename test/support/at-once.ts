import { afterAll, beforeAll, describe, it } from '@jest/globals';
import type { LeaseStoreSuiteOptions } from '../../lib/testing/describe-lease-store.js';

interface Planned {
  readonly name: string;
  readonly test: () => Promise<void>;
  outcome?: Promise<void>;
  isTold?: boolean;
}

/**
 * A test runner that begins its tests together, so many at a time, and reports them one by one: for a suite that spends
 * its time waiting for ttls to end.
 *
 * @param atOnce - 1 for those that cannot stand company
 */
export function runAtOnce(
  atOnce: number,
  wanted: (name: string) => boolean = () => true,
): Required<Pick<LeaseStoreSuiteOptions, 'describe' | 'it'>> {
  const planned: Planned[] = [];
  const all = (): void => {
    let free = atOnce;
    const waiting: (() => void)[] = [];
    for (const one of planned) {
      const turn = new Promise<void>((resolve) => {
        if (free-- > 0) resolve();
        else waiting.push(resolve);
      });
      one.outcome = turn.then(one.test).finally(() => waiting.shift()?.());
      // Told when it is its turn to be reported.
      one.outcome.catch(() => {});
    }
  };
  beforeAll(all);
  afterAll(() => Promise.allSettled(planned.map(({ outcome }) => outcome)));
  return {
    describe,
    it: (name, test) => {
      if (!wanted(name)) return;
      const one: Planned = { name, test };
      planned.push(one);
      it(name, () => {
        // A second try of the same test is one: it is begun anew, and by itself.
        if (one.isTold) return one.test();
        one.isTold = true;
        return one.outcome!;
      });
    },
  };
}
