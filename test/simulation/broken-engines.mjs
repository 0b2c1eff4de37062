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
const WAITER = 'lib/lease/waiter.ts';
const RELEASER = 'lib/lease/releaser.ts';
const HOLDING = 'lib/lease/holding.ts';
const RENEWER = 'lib/lease/renewer.ts';
const TRUST = 'lib/lease/trust.ts';
const QUEUE = 'lib/lease/wait-queue.ts';
const PATIENCE = 'lib/lease/patience.ts';
const STORE = 'test/simulation/reference-store.ts';
const CONNECTION = 'test/simulation/simulated-store.ts';

/** @type {readonly { name: string, changes: { file: string, find: string | RegExp, put: string }[] }[]} */
export const brokenEngines = [
  broken('a store that grants what is held', STORE, 'if (freeAt > now) {', 'if (false) {'),
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
    'new Trust(agenda.clock, sent.mono, sent.wall, hold.ttl)',
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
    '() => store.release(holding.hold, how)',
    '() => Promise.resolve(true)',
  ),
  broken(
    'last come, first served',
    QUEUE,
    'this.#waiters.push(waiter);',
    'this.#waiters.splice(this.#waiters[0] ? 1 : 0, 0, waiter);',
  ),
  broken(
    'a wait that sleeps past its end',
    WAITER,
    'Math.min(queue.pause(this, answer), left)',
    'queue.pause(this, answer)',
  ),
  broken(
    'a hint that is lost while a claim is on the way',
    WAITER,
    'if (this.queue.hints !== this.#seen) return this.#look();',
    '',
  ),
  broken(
    'one who is next and is not called',
    QUEUE,
    'for (let { head } = this; head?.isQueued; { head } = this) head.called();',
    '',
  ),
  broken(
    'a wait that does not end with its signal',
    'lib/lease/seeker.ts',
    'handleEvent(): void {\n    this.giveUp();',
    'handleEvent(): void {',
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
    'taken.map(letGo)',
    'taken.map(minHoldOf)',
  ),
  broken('minHold ignored', RELEASER, 'keepFor > 0 ? { keepFor }', 'keepFor > 1e9 ? { keepFor }'),
  broken('maxHold ignored', ENGINE, 'maxHoldAt: heldFrom + options.maxHold', 'maxHoldAt: Infinity'),
  broken(
    'done and not remembered',
    RELEASER,
    'once !== undefined && holding.succeeded',
    'once !== undefined && holding.failures > 1e9',
  ),
  broken(
    'a release that hides the error of the work',
    ENGINE,
    'const released = this.#giveBack(lease);\n      if (released !== undefined) await released;',
    "if ((await lease.release()) !== 'released') throw new Error('not released');",
  ),
  broken(
    'an answer too late that nobody handles',
    PATIENCE,
    'if (!this.#end()) return this.asker.late?.(undefined);',
    'if (!this.#end()) throw error;',
  ),
  broken(
    'trust in a grant by call counted from its arrival',
    CLAIMANT,
    'new Trust(agenda.clock, inLine.mono, inLine.wall, hold.ttl)',
    'new Trust(agenda.clock, agenda.clock.now(), agenda.clock.wall(), hold.ttl)',
  ),
  broken(
    'trust in a grant by call counted from the last request',
    CLAIMANT,
    'attempt.inLine ??= sent',
    'attempt.inLine = sent',
    [[CLAIMANT, 'next.inLine ??= sent', 'next.inLine = sent']],
  ),
  broken(
    'a grant by call that is kept although nobody waits any more',
    CLAIMANT,
    'if (attempt.over) return this.giveBack(hold);',
    'if (attempt.over) return;',
  ),
  broken(
    'a wait given up that stays in line',
    CLAIMANT,
    'attempt.inDoubt || attempt.inLine !== undefined',
    'attempt.inDoubt',
  ),
  broken(
    'a process that claims to have waited for ever',
    CLAIMANT,
    'const waited = mono - startedAt;',
    'const waited = 1e6 + 0 * (mono - startedAt);',
  ),
  broken(
    'one in line who only listens',
    QUEUE,
    'return Math.min(free, third, NET_AT_MOST);',
    'return 1e6 + third;',
  ),
  broken(
    'a run that is over before its release was sent',
    ENGINE,
    '    lease.giveBack();',
    '    this.agenda.after(1, () => lease.giveBack());',
  ),
  broken(
    'a hand-over that does not ask whether the key is free',
    STORE,
    'answer: this.#claim(next, ear) }',
    'answer: this.#grant(next) }',
  ),
  broken(
    'a hand-over that frees the key of another',
    STORE,
    'const freed = this.#free(hold, {});',
    'const { token = hold.token } = this.#seats.find((seat) => seat.key === hold.key) ?? hold;\n    const freed = this.#free({ ...hold, token }, {});',
  ),
  broken(
    'a hand-over that keeps the fence',
    STORE,
    'answer: this.#claim(next, ear) }',
    'answer: { fence: this.#fences.get(hold.key), ...this.#claim(next, ear), ...(freed ? { fence: this.#fences.get(hold.key)! - 1 } : {}) } as Grant }',
  ),
  broken(
    'a hand-over past those who came before',
    STORE,
    'answer: this.#claim(next, ear) }',
    'answer: this.#claim({ ...next, waited: 1e6 }, ear) }',
  ),
  broken(
    'a line that gives the key to two',
    STORE,
    'if (this.#freeAt(key, claim.permits) > this.now()) continue;',
    'if (isHeld) continue;',
    [
      [
        STORE,
        'for (const waiter of this.#line.filter(',
        'const isHeld = this.#freeAt(key, 1) > this.now();\n    for (const waiter of this.#line.filter(',
      ],
    ],
  ),
  broken('last in line, first served', STORE, 'waiter.since > since', 'waiter.since < since'),
  broken(
    'a store that gives back a grant by call which it has answered too',
    CONNECTION,
    '() => server.data.acquire(claim, deadline, ear));',
    '() => server.data.acquire(claim, deadline, ear), ({ granted }) => void (granted && this.line.leave(claim.token)));',
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
