import { calls, callsProfiled } from './calls.mjs';
import { callerWaits, cycles, cyclesOnManyKeys, cyclesProfiled } from './cycles.mjs';
import { keepHolding, letGo, takeMany } from './holding.mjs';
import { takeOne, told } from './told.mjs';
import { warmUp } from './warm-up.mjs';
import { waiters } from './waiters.mjs';

/** What a worker can be told to do with a contestant: `(opened, params) => figures`. */
export const jobs = {
  callerWaits,
  calls,
  callsProfiled,
  cycles,
  cyclesOnManyKeys,
  cyclesProfiled,
  keepHolding,
  letGo,
  takeMany,
  takeOne,
  told,
  waiters,
  warmUp,
};
