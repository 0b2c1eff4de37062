/**
 * `npm run check`: everything besides the specs that must hold before a release. Stops at the first failure.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const temp = mkdtempSync(join(tmpdir(), 'nestjs-lease-check-'));
const PATH = [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter);

const steps = [
  ['embedded Lua', () => node('scripts/embed-lua.mjs', '--check')],
  ['layers', () => node('scripts/layers.mjs')],
  ['format', () => run('prettier', '--check', '--log-level', 'warn', '.')],
  ['lint', () => run('oxlint', '--deny-warnings')],
  ['types', () => run('tsc', '--noEmit', '-p', 'tsconfig.check.json')],
  ['build', () => run('nest', 'build')],
  ['API report', () => node('scripts/api-report.mjs', '--check')],
  ['pack', () => run('npm', 'pack', '--silent', '--pack-destination', temp)],
  ['publint', () => run('publint', 'run', tarball(), '--strict')],
  // ESM only, on purpose: a CommonJS application loads it by require(esm), which the tarball tests prove.
  ['attw', () => run('attw', tarball(), '--profile', 'esm-only')],
  ['tarball', () => node('test/tarball/run.mjs', tarball())],
];

try {
  for (const [name, step] of steps) {
    const start = performance.now();
    const { ok, output } = step();
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(13)} ${seconds.padStart(5)} s`);
    if (!ok) {
      console.error(output);
      process.exitCode = 1;
      break;
    }
  }
} finally {
  rmSync(temp, { recursive: true, force: true });
}

function node(script, ...args) {
  return run(process.execPath, script, ...args);
}

function run(command, ...args) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    env: { ...process.env, PATH },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  });
  return { ok: status === 0, output: error?.message ?? `${stdout}${stderr}`.trim() };
}

function tarball() {
  return join(
    temp,
    readdirSync(temp).find((file) => file.endsWith('.tgz')),
  );
}
