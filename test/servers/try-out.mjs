import { execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { programsOf } from './cache.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Besides the specs, those that only these servers can pass. */
const SPECS = ['**/test/**/*.spec.ts', '**/test/servers/*-too-old.ts'];
const running = new Set();

/** Runs the specs of a server on it. Rejects when the server cannot be had, or when jest did not get as far as tests. */
export async function tryOut(server, options) {
  const [program] = programsOf(server, options);
  const version = versionOf(program);
  console.log(`${server.id}: ${version}, ${program}`);
  const began = performance.now();
  const files = await runTwice(Object.values(server.groups).flat(), {
    [server.variable]: program,
  });
  const count = (specs) => countOf(files.filter(({ name }) => specs.includes(name)));
  return {
    id: server.id,
    version,
    date: new Date().toISOString().slice(0, 10),
    seconds: Math.round((performance.now() - began) / 1e3),
    groups: Object.fromEntries(
      Object.entries(server.groups).map(([name, specs]) => [name, count(specs)]),
    ),
    failed: files.flatMap(({ failed }) => failed),
  };
}

/** Ends the jest that runs, and with it its servers. */
export const stopRunning = () => running.forEach((child) => child.kill('SIGTERM'));

/** It is in what every one of them says of itself, before any other number. */
function versionOf(program) {
  const said = execFileSync(program, ['--version'], { encoding: 'utf8' });
  return /\d[\w.]*/.exec(said)[0];
}

/** What fails beside others has a second try by itself, and is counted as that: the specs race with short ttls. */
async function runTwice(specs, variables) {
  const first = await runSpecs(specs, variables);
  const failed = first.filter((file) => file.failed.length > 0);
  if (failed.length === 0) return first;
  const names = failed.map(({ name }) => name);
  const second = await runSpecs(names, variables, ['--runInBand']);
  return first.map((file) => {
    const after = second.find(({ name }) => name === file.name) ?? file;
    const better = file.failed.filter((title) => !after.failed.includes(title));
    return { ...after, again: after.again + better.length };
  });
}

async function runSpecs(specs, variables, more = []) {
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-lease-tried-'));
  try {
    const [log, results] = [join(folder, 'log'), join(folder, 'results.json')];
    const which = [...SPECS.map((it) => `--testMatch=${it}`), '--runTestsByPath', ...specs];
    const how = ['--json', '--forceExit', `--outputFile=${results}`, ...more, ...which];
    const code = await runTo(log, [join(root, 'test', 'run.mjs'), ...how], variables);
    if (code !== 0) console.log(readFileSync(log, 'utf8'));
    const files = existsSync(results) ? filesOf(JSON.parse(readFileSync(results, 'utf8'))) : [];
    if (files.length !== specs.length) {
      throw new Error(`Of ${specs.length} files of tests ${files.length} were run; see above.`);
    }
    return files;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runTo(log, args, variables) {
  const file = openSync(log, 'w');
  const env = { ...process.env, ...variables };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', file, file] });
  running.add(child);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject).once('exit', (code) => resolve(code ?? 1));
    });
  } finally {
    running.delete(child);
    closeSync(file);
  }
}

function filesOf({ testResults }) {
  return testResults.map(({ name, assertionResults, message }) => {
    const title = relative(root, name);
    const failed = assertionResults.filter(({ status }) => status !== 'passed');
    const isBroken = assertionResults.length === 0;
    return {
      name: title,
      passed: assertionResults.length - failed.length,
      all: assertionResults.length + (isBroken ? 1 : 0),
      again: assertionResults.filter((it) => it.status === 'passed' && it.invocations > 1).length,
      failed: isBroken
        ? [`${title}: ${message}`]
        : failed.map((one) => `${title}: ${one.fullName}`),
    };
  });
}

const countOf = (files) => ({
  passed: sum(files.map(({ passed }) => passed)),
  all: sum(files.map(({ all }) => all)),
  again: sum(files.map(({ again }) => again)),
});

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
