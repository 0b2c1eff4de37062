/**
 * What is checked: the whole models, which must hold; the same with one rule broken, which must be found wrong; and what
 * has to be reachable, or a model that holds would show nothing.
 *
 * `breaks`: what the assertion looks like that must be the one that is violated. `optimize`: for the compiler; the fewer states
 * there are, the less of it pays.
 */
const TWO = /violated 0$/;
const FENCE = /counter>highest/;
const REGISTER = /mark>=accepted/;
const TWO_ON_NODES = /other==me/;
const FENCE_ON_NODES = /fence>highest/;
const SETTLES_LATE = '-DNO_RENEWAL -DROUNDS=2 -DAHEAD=0 -DSETTLE_WITHOUT_ROUND';
const SEEN = /\b(\d+)!=\1\b/;

/** @typedef {{ model: string, name: string, must: 'hold' | 'fail' | 'be seen', flags: string, breaks?: RegExp, optimize: number }} Version */

/** @type {readonly Version[]} */
export const versions = [
  holds('lease', 'three, one claim each', '-DACQUISITIONS=3 -DCLAIMS=1'),
  holds('lease', 'two, claims and renewals repeated', '-DRENEWALS=2'),
  holds('lease', 'two, a ttl of 6', '-DTTL=6'),
  holds('lease', 'failover to a replica that lags', '-DFAILOVER'),
  holds('lease', 'writes behind a gate', '-DWRITES'),
  holds('lease', 'writes behind a gate, failover', '-DWRITES -DFAILOVER -DCLAIMS=1'),

  fails('lease', 'trust counted from the answer', '-DTRUST_FROM_ANSWER', TWO),
  fails('lease', 'no margin, and clocks drift', '-DNO_MARGIN', TWO),
  fails('lease', 'loss is not final', '-DLOSS_NOT_FINAL', TWO),
  fails('lease', 'renewal re-creates', '-DRECREATES', /freed/),
  fails(
    'lease',
    'release asks for no token',
    '-DACQUISITIONS=3 -DCLAIMS=1 -DRELEASES_ANYTHING',
    TWO,
  ),
  fails('lease', 'a claim has no deadline', '-DNO_DEADLINE', /owner==me/),
  fails('lease', 'fences are a clock alone', '-DTIME_ONLY', FENCE),
  fails('lease', 'fences are a counter alone', '-DCOUNTER_ONLY -DFAILOVER', FENCE),
  fails('lease', 'no gate', '-DWRITES -DGATE_OFF', REGISTER),

  seen('lease', 'the answer to a second claim', '-DSEES=ANSWER_TO_RETRY'),
  seen('lease', 'a renewal that adds to the trust', '-DSEES=RENEWAL'),
  seen('lease', 'taken over from a paused holder', '-DSEES=TAKEN_OVER'),
  seen('lease', 'a release under the next holder', '-DSEES=LATE_RELEASE'),
  seen('lease', 'a claim granted after it was given up', '-DSEES=LEFTOVER'),
  seen('lease', 'a stale write refused', '-DWRITES -DSEES=STALE_WRITE_REFUSED'),
  seen('lease', 'two that trust after a failover', '-DFAILOVER -DSEES=TWO_AFTER_FAILOVER'),
  seen('lease', 'told "gone" while it trusts', '-DFAILOVER -DSEES=TOLD_GONE'),

  holds('redlock', 'clocks disagree', '-DNO_RENEWAL'),
  holds('redlock', 'renewals and healing', '-DAHEAD=0 -DCOUNTS_OWNED', 2),
  holds('redlock', 'a node restarts empty', '-DNO_RENEWAL -DRESTARTS=1', 2),
  holds('redlock', 'a token claims again', '-DNO_RENEWAL -DROUNDS=2 -DAHEAD=0', 2),

  fails('redlock', 'no write-back', '-DNO_RENEWAL -DNO_WRITE_BACK', FENCE_ON_NODES),
  fails('redlock', 'a minority is enough', '-DNO_RENEWAL -DMINORITY', TWO_ON_NODES),
  fails('redlock', 'no quarantine', restarted('-DNO_QUARANTINE'), TWO_ON_NODES),
  fails('redlock', 'no floor', restarted('-DNO_FLOOR'), FENCE_ON_NODES, 1),
  fails('redlock', 'a floor from one node', restarted('-DFLOOR_FROM_ONE'), FENCE_ON_NODES, 1),
  fails('redlock', 'the floor asked too early', restarted('-DFLOOR_TOO_EARLY'), FENCE_ON_NODES, 2),
  fails('redlock', 'healing takes from others', healed('-DHEALS_ANYTHING'), /trust>0/),
  fails('redlock', 'giving back names no round', again('-DGIVE_BACK_WITHOUT_ROUND'), TWO_ON_NODES),
  fails('redlock', 'settling names no round', SETTLES_LATE, FENCE_ON_NODES, 2),
  fails(
    'redlock',
    'one that was told a fence wins',
    again('-DONE_SETTLED_WINS'),
    FENCE_ON_NODES,
    1,
  ),

  seen('redlock', 'a renewal that adds to the trust', healed('-DSEES=RENEWAL')),
  seen('redlock', 'a node that is healed', healed('-DSEES=HEALING')),
  seen('redlock', 'a node that votes again, with a floor', restarted('-DSEES=READMISSION')),
  seen('redlock', 'a lease of a second round', again('-DSEES=SECOND_ROUND')),
  seen('redlock', 'a grant in vain', '-DNO_RENEWAL -DSEES=PARTIAL_GRANT'),
  seen('redlock', 'another majority', '-DNO_RENEWAL -DSEES=OTHER_MAJORITY'),
];

// A counterexample of a smaller model is one of the whole.
function restarted(flags) {
  return `-DNO_RENEWAL -DRESTARTS=1 -DNO_LOST_VOTES ${flags}`;
}
function healed(flags) {
  return `-DAHEAD=0 -DNO_LOST_VOTES -DCOUNTS_OWNED ${flags}`;
}
function again(flags) {
  return `-DNO_RENEWAL -DROUNDS=2 -DAHEAD=0 -DNO_LOST_VOTES ${flags}`;
}

function holds(model, name, flags, optimize = 1) {
  return { model, name, must: 'hold', flags, optimize };
}
function fails(model, name, flags, breaks, optimize = 0) {
  return { model, name, must: 'fail', flags, breaks, optimize };
}
function seen(model, name, flags) {
  return { model, name, must: 'be seen', flags, breaks: SEEN, optimize: 0 };
}
