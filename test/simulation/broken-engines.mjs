/**
 * Engines and stores with one rule broken each: what the simulation is worth is how soon it finds them.
 * Prints a line of JSON for each: its name, the seeds it took, and the rule that was seen broken.
 *
 *   node test/simulation/broken-engines.mjs [part of a name]
 */
import { fileURLToPath } from 'node:url';
import { loadSimulation } from './compile.mjs';

const ENGINE = 'lib/lease/lease-engine.ts';
const CLAIMANT = 'lib/lease/claimant.ts';
const CONTENDER = 'lib/lease/contender.ts';
const RELEASER = 'lib/lease/releaser.ts';
const HOLDING = 'lib/lease/holding.ts';
const RENEWER = 'lib/lease/renewer.ts';
const TRUST = 'lib/lease/trust.ts';
const QUEUE = 'lib/lease/wait-queue.ts';
const PATIENCE = 'lib/lease/patience.ts';
const STORE = 'test/simulation/reference-store.ts';

/** @type {readonly { name: string, changes: { file: string, find: string | RegExp, put: string }[] }[]} */
export const brokenEngines = [
  broken(
    'a store that grants what is held',
    STORE,
    'if (freeAt > now) return',
    'if (false) return',
  ),
  broken(
    'a store with one permit too many',
    STORE,
    'others.length < permits',
    'others.length <= permits',
  ),
  broken(
    'a store that releases whatever the token',
    STORE,
    'const mine = this.#seatOf(key, token);\n    if (mine === undefined) return false;',
    'const mine = this.#seats.find((seat) => seat.key === key);\n    if (mine === undefined) return false;',
  ),
  broken(
    'a store whose renewal creates the key again',
    STORE,
    "if (mine === undefined) return 'gone';",
    "if (mine === undefined) { const fence = this.#fences.get(key) ?? 1; this.#seats.push({ key, token, permits: 1, fence, until: this.now() + ttl }); return 'renewed'; }",
  ),
  broken(
    'a store whose fences start again after a loss of data',
    STORE,
    'Math.max((this.#fences.get(key) ?? 0) + 1, FENCE_START + Math.floor(now * 1_000))',
    '(this.#fences.get(key) ?? 0) + 1',
  ),
  broken(
    'a store that forgets what is done',
    STORE,
    '(this.#marks.get(`${key} ${once}`) ?? 0) > now',
    'false',
  ),
  broken(
    'trust counted from the answer',
    CLAIMANT,
    'new Trust(agenda.clock, mono, wall, hold.ttl)',
    'new Trust(agenda.clock, agenda.clock.now(), agenda.clock.wall(), hold.ttl)',
  ),
  broken('trust without a margin', TRUST, 'ttl - ttl * MARGIN;', 'ttl;'),
  broken(
    'renewed trust counted from the answer',
    RENEWER,
    'this.#renewed(holding, mono, wall,',
    'this.#renewed(holding, this.agenda.clock.now(), this.agenda.clock.wall(),',
  ),
  broken(
    'no timer for the loss',
    RENEWER,
    'Math.min(holding.renewAt, holding.endsAt, look)',
    'holding.renewAt',
  ),
  broken(
    'no look at the clock when asked',
    HOLDING,
    'const verdict = this.#verdict();',
    'const verdict = undefined as LossReason | undefined;',
  ),
  broken(
    'a wall clock nobody looks at',
    TRUST,
    'return this.clock.wall() - this.#wall;',
    'return 0 * this.#wall;',
  ),
  broken(
    'a late renewal that brings a lease back',
    HOLDING,
    /(renewed\(mono: number, wall: number, ttl: number\): boolean \{\n)/,
    "$1    if (this.#state === 'lost') this.#state = 'held';\n    this.trust.extend(mono, wall, ttl);\n",
  ),
  broken('a loss without its signal', HOLDING, 'this.#abort?.abort(this.lostException());', ''),
  broken('"not yours" ignored', RENEWER, "holding.lose('taken');", ''),
  broken(
    'an inner release that frees the key',
    RELEASER,
    'if (--holding.uses > 0) return',
    'if (--holding.uses > 99) return',
  ),
  broken(
    'a release that the store is not told of',
    RELEASER,
    "if (freed === true) return 'released';",
    "if (freed !== undefined) return 'released';\n      ",
    [[RELEASER, 'this.store.release(holding.hold, how),', 'Promise.resolve(true),']],
  ),
  broken(
    'last come, first served',
    QUEUE,
    'this.#places.push({ place, call });',
    'this.#places.splice(this.#places[0] ? 1 : 0, 0, { place, call });',
  ),
  broken(
    'a wait that sleeps past its end',
    CONTENDER,
    /Math\.min\(\s*queue\.pause\(place, answer\.retryAfterMs\),\s*deadline - clock\.now\(\),?\s*\)/,
    'queue.pause(place, answer.retryAfterMs)',
  ),
  broken(
    'a shutdown that releases under running work',
    ENGINE,
    '.filter((lease) => !left.includes(lease))',
    '',
  ),
  broken(
    'several keys, and one failing keeps the others',
    ENGINE,
    'taken.map((holding) => this.#releaser.letGo(holding, minHoldOf(holding)))',
    'taken.map(minHoldOf)',
  ),
  broken('minHold ignored', RELEASER, 'keepFor > 0 ? { keepFor }', 'keepFor > 1e9 ? { keepFor }'),
  broken('maxHold ignored', ENGINE, 'maxHoldAt: sentAt + options.maxHold', 'maxHoldAt: Infinity'),
  broken(
    'done and not remembered',
    RELEASER,
    'once !== undefined && holding.succeeded',
    'once !== undefined && holding.failures > 1e9',
  ),
  broken(
    'a release that hides the error of the work',
    ENGINE,
    /await lease\.release\(\);\n(\s+)this\.#work\./,
    "if ((await lease.release()) !== 'released') throw new Error('not released');\n$1this.#work.",
  ),
  broken(
    'an answer too late that nobody handles',
    PATIENCE,
    /\(error(: unknown)?\) => \(settle\(\) \? reject\(error\) : late\(undefined\)\)/,
    '(error: unknown) => { if (settle()) reject(error); else throw error; }',
  ),
];

function broken(name, file, find, put, more = []) {
  const others = more.map(([file, find, put]) => ({ file, find, put }));
  return { name, changes: [{ file, find, put }, ...others] };
}

/** A minute of simulation is the most that any of them may take. */
const PATIENCE_MS = 60_000;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , part = ''] = process.argv;
  for (const { name, changes } of brokenEngines) {
    if (!name.includes(part)) continue;
    const { explore } = await loadSimulation(name, changes);
    const began = performance.now();
    const isOver = () => performance.now() - began > PATIENCE_MS;
    const { tried, found } = await explore({ from: 1, seeds: Infinity, isOver });
    const ms = Math.round(performance.now() - began);
    console.log(JSON.stringify({ name, tried, ms, found: found?.violation.message }));
  }
}
