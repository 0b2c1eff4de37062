import decorator from './decorator.mjs';
import fences from './fences.mjs';
import growth from './growth.mjs';
import holding from './holding.mjs';
import hundredKeys from './hundred-keys.mjs';
import pipelining from './pipelining.mjs';
import profile from './profile.mjs';
import sequential from './sequential.mjs';
import stores from './stores.mjs';
import told from './told.mjs';
import waiters from './waiters.mjs';

/**
 * A scenario has an `id`, a `title`, what it is `about`, `run(bench)` that gives figures, and `tables(figures)` that
 * shows them. One that `isLong` is left out of a quick run.
 */
export const scenarios = [
  sequential,
  profile,
  hundredKeys,
  waiters,
  decorator,
  holding,
  growth,
  stores,
  fences,
  pipelining,
  told,
];
