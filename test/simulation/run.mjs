/**
 * The lease engine in a simulated world, seed after seed, until a rule is broken or the time is over.
 *
 *   --minutes N    for so long (default 1)
 *   --from N       the first seed (default: by the clock, so that every run sees others)
 *   --seeds N      at most so many
 *   --seed N       this one alone, and cut down to what matters if it fails
 *   --mode M       kept, failover, or both in turns (default)
 */
import { parseArgs } from 'node:util';
import { loadSimulation } from './compile.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    from: { type: 'string' },
    seeds: { type: 'string' },
    seed: { type: 'string' },
    mode: { type: 'string' },
  },
});
const { explore, minimise, replayCommand } = await loadSimulation('run');

const modes = [values.mode ?? (values.seed === undefined ? ['kept', 'failover'] : 'kept')].flat();
const began = performance.now();
const end = began + Number(values.minutes) * 60_000;
const first = Number(values.seed ?? values.from ?? Math.floor(Date.now() / 1_000));
const most = values.seed === undefined ? Number(values.seeds ?? Infinity) : 1;
const IN_TURN = 100;

const seen = { events: 0 };
const add = (what, to) => {
  for (const [name, value] of Object.entries(what)) {
    if (typeof value === 'number') to[name] = (to[name] ?? 0) + value;
    else add(value, (to[name] ??= {}));
  }
};

let runs = 0;
let found;
for (let from = first; !found && from < first + most && performance.now() < end; from += IN_TURN) {
  for (const mode of modes) {
    const explored = await explore({
      from,
      seeds: Math.min(IN_TURN, first + most - from),
      mode,
      isOver: () => performance.now() > end,
      onReport: (report) => {
        runs++;
        seen.events += report.events;
        add(report.seen, seen);
      },
    });
    found ??= explored.found;
  }
}
const seconds = (performance.now() - began) / 1_000;
console.log(`${runs} runs from seed ${first} in ${seconds.toFixed(1)} s (${modes.join(', ')})`);
console.log(`seen: ${JSON.stringify(seen)}`);
if (found) {
  console.log(`\nseed ${found.seed}: ${found.violation.message}\nagain: ${replayCommand(found)}\n`);
  console.log(JSON.stringify(await minimise(found), null, 1));
  process.exitCode = 1;
}
