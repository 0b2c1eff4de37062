/**
 * `npm run model`: checks every version of the models with spin, each of them to its last state, and prints what came of it.
 *
 *   --quick          only what takes next to no time
 *   --only PART      the versions with this in "model: name"
 *   --story          with it: the steps of the shortest counterexample
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ensureServers } from '../test/support/find-servers.mjs';
import { versions } from './versions.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const MEMORY_MB = 2_000;
const WITHIN_MS = 600_000;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    story: { type: 'boolean', default: false },
  },
});
const chosen = versions.filter(
  ({ model, name, quick }) => `${model}: ${name}`.includes(values.only) && (quick || !values.quick),
);

try {
  if (chosen.length === 0) throw new Error(`No version is called like "${values.only}".`);
  ensureServers(['spin', 'gcc']);
  const began = performance.now();
  console.log('| version | states | s | verdict | steps |\n|---|---:|---:|---|---:|');
  const wrong = chosen.filter((version) => !isAsItMust(version));
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  console.log(
    `\n${chosen.length - wrong.length} of ${chosen.length} as they must be, ${seconds} s`,
  );
  for (const { model, name, must } of wrong) console.error(`must ${must}: ${model}: ${name}`);
  if (wrong.length > 0) process.exitCode = 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

/** Checks one version and prints its line. */
function isAsItMust(version) {
  const { model, name, must, flags, breaks } = version;
  const temp = mkdtempSync(join(tmpdir(), 'nestjs-lease-model-'));
  const began = performance.now();
  try {
    const options = flags.split(' ');
    const file = join(folder, `${model}.pml`);
    run(temp, process.env.SPIN, ['-a', ...options, file]);
    // Breadth first: the first counterexample is a shortest one, and no depth is too deep.
    run(temp, process.env.C_COMPILER, [
      '-O2',
      '-DSAFETY',
      '-DBFS',
      `-DMEMLIM=${MEMORY_MB}`,
      '-o',
      'pan',
      'pan.c',
    ]);
    // -E: to have nothing left to do is no error.
    const checked = read(run(temp, join(temp, 'pan'), ['-E']));
    const isRight = must === 'hold' ? checked.holds : breaks.test(checked.violated ?? '');
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    const verdict = `${verdictOf(must, checked)}${isRight ? '' : ' **unexpected**'}`;
    const row = [`${model}: ${name}`, checked.states, seconds, verdict, checked.steps ?? ''];
    console.log(`| ${row.join(' | ')} |`);
    if (values.story && checked.violated) {
      console.log(
        run(temp, process.env.SPIN, ['-t', '-p', '-k', `${model}.pml.trail`, ...options, file]),
      );
    }
    return isRight;
  } finally {
    rmSync(temp, { recursive: true, force: true });
  }
}

function verdictOf(must, { holds, violated }) {
  if (holds) return must === 'be seen' ? 'never happens' : 'holds';
  if (violated === undefined) return 'not checked to the end';
  return must === 'be seen' ? 'happens' : 'wrong';
}

/** What the checker said. It holds only when it has seen all: anything that it complains about is no verdict. */
function read(said) {
  const states = Number(/^\s*(\d+) states, stored/m.exec(said)?.[1] ?? NaN);
  const errors = Number(/errors: (\d+)/.exec(said)?.[1] ?? NaN);
  const [, violated, steps] =
    /pan:\d+: (assertion violated.*?) \(at depth (\d+)\)/.exec(said) ?? [];
  const isWhole =
    !/max search depth too small|out of memory|memory limit|not completed|aborted/i.test(said);
  return { states, holds: errors === 0 && isWhole && states > 0, violated, steps };
}

function run(cwd, command, args) {
  const { status, signal, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: WITHIN_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error ?? signal) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? signal}`);
  // The checker says with its status that it found something, too.
  if (status !== 0 && !command.endsWith('pan')) {
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`);
  }
  return `${stdout}${stderr}`;
}
