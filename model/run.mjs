/**
 * `npm run model`: checks every version of the models with spin, each of them to its last state, and prints what came of it.
 *
 *   --only PART      the versions with this in "model: name"
 *   --story          with it: the steps of the shortest counterexample
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ensureServers } from '../test/support/find-servers.mjs';
import { versions } from './versions.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
/** Of each of those that run at a time. */
const MEMORY_MB = 1_000;
const AT_A_TIME = Math.min(2, availableParallelism());
const WITHIN_MS = 600_000;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    story: { type: 'boolean', default: false },
  },
});

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

async function main() {
  const chosen = versions.filter(({ model, name }) => `${model}: ${name}`.includes(values.only));
  if (chosen.length === 0) throw new Error(`No version is called like "${values.only}".`);
  ensureServers(['spin', 'gcc']);
  const began = performance.now();
  console.log('| version | states | s | verdict | steps |\n|---|---:|---:|---|---:|');
  const results = await inOrder(chosen, check, print);
  const wrong = results.filter(({ isRight }) => !isRight);
  const right = chosen.length - wrong.length;
  console.log(`\n${right} of ${chosen.length} are as they must be, ${secondsSince(began)} s`);
  for (const { version } of wrong) {
    console.error(`must ${version.must}: ${version.model}: ${version.name}`);
  }
  return wrong.length > 0 ? 1 : 0;
}

/** So many at a time, and told of in their order. */
async function inOrder(all, work, tell) {
  const results = [];
  let begun = 0;
  let told = 0;
  const worker = async () => {
    while (begun < all.length) {
      const at = begun++;
      results[at] = await work(all[at]);
      while (results[told] !== undefined) tell(results[told++]);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
  return results;
}

async function check(version) {
  const { model, must, flags, breaks, optimize } = version;
  const temp = mkdtempSync(join(tmpdir(), 'nestjs-lease-model-'));
  const began = performance.now();
  try {
    const file = join(folder, `${model}.pml`);
    const options = [...flags.split(' '), file];
    await run(temp, process.env.SPIN, ['-a', ...options]);
    // Breadth first: the first counterexample is a shortest one, and no depth is too deep.
    const settings = ['-DSAFETY', '-DBFS', `-DMEMLIM=${MEMORY_MB}`];
    await run(temp, process.env.C_COMPILER, [`-O${optimize}`, ...settings, '-o', 'pan', 'pan.c']);
    // -E: to have nothing left to do is no error. With its status it says that it found something, too.
    const checked = read(await run(temp, join(temp, 'pan'), ['-E'], { isVerdict: true }));
    const isRight = must === 'hold' ? checked.holds : (breaks?.test(checked.violated) ?? false);
    const { violated } = checked;
    const steps =
      violated &&
      storyOf(await run(temp, process.env.SPIN, ['-T', '-k', `${model}.pml.trail`, ...options]));
    return { version, ...checked, isRight, steps, seconds: secondsSince(began) };
  } finally {
    rmSync(temp, { recursive: true, force: true });
  }
}

function print(result) {
  const { version, states, seconds, isRight, steps } = result;
  const verdict = `${verdictOf(result)}${isRight ? '' : ', which it must not'}`;
  console.log(
    `| ${[`${version.model}: ${version.name}`, states, seconds, verdict, steps.length || ''].join(' | ')} |`,
  );
  if (values.story) for (const step of steps) console.log(step);
}

/** What the models print, which they do only when a counterexample is told again. */
function storyOf(said) {
  const lines = said.split('\n').map((line) => line.trim());
  return lines.slice(
    0,
    lines.findIndex((line) => line.startsWith('spin:')),
  );
}

function verdictOf({ version, holds, violated }) {
  const isWitness = version.must === 'be seen';
  if (holds) return isWitness ? 'never happens' : 'holds';
  if (violated === '') return 'not seen to the end';
  return isWitness ? 'happens' : 'wrong';
}

/** What the checker said. It holds only when all was seen: whatever else it complains about is no verdict. */
function read(said) {
  const states = Number(/^\s*(\d+) states, stored/m.exec(said)?.[1] ?? NaN);
  const errors = Number(/errors: (\d+)/.exec(said)?.[1] ?? NaN);
  const [, violated = ''] = /pan:\d+: (assertion violated.*?) \(at depth \d+\)/.exec(said) ?? [];
  const isCutShort = /too small|out of memory|memory limit|not completed|aborted/i;
  const holds = errors === 0 && states > 0 && !isCutShort.test(said);
  return { states, holds, violated };
}

function run(cwd, command, args, { isVerdict = false } = {}) {
  const settings = { cwd, timeout: WITHIN_MS, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve, reject) => {
    execFile(command, args, settings, (error, stdout, stderr) => {
      const said = `${stdout}${stderr}`;
      if (!error || (isVerdict && typeof error.code === 'number')) resolve(said);
      else reject(new Error(`\`${command} ${args.join(' ')}\` failed.\n${error.message}\n${said}`));
    });
  });
}

function secondsSince(began) {
  return ((performance.now() - began) / 1_000).toFixed(1);
}
