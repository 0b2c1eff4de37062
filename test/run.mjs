/**
 * `npm test`: the types, then all specs with coverage. `npm test -- <jest arguments>`: jest alone, with these.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureServers } from './support/find-servers.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const jestArguments = process.argv.slice(2);
const everything = jestArguments.length === 0;

/** Runs a package's command to its end and gives its exit code. */
function run(script, args, env = process.env) {
  const child = spawn(process.execPath, [join(root, 'node_modules', script), ...args], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  const forward = (signal) => child.kill(signal);
  process.on('SIGINT', forward).on('SIGTERM', forward);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      process.off('SIGINT', forward).off('SIGTERM', forward);
      resolve(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });
}

async function main() {
  ensureServers();
  if (everything) {
    const types = await run('typescript/bin/tsc', ['--noEmit', '-p', 'tsconfig.check.json']);
    if (types !== 0) return types;
  }
  const nodeOptions = [
    process.env.NODE_OPTIONS,
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
  ];
  return run('jest/bin/jest.js', everything ? ['--coverage'] : jestArguments, {
    ...process.env,
    NODE_OPTIONS: nodeOptions.filter(Boolean).join(' '),
  });
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
