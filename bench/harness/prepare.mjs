import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { benchFolder, libraryFolder, rootFolder } from './library.mjs';

/** Installs the peers and builds the library, where that has not been done. */
export function prepare() {
  if (!existsSync(join(benchFolder, 'node_modules', 'redlock'))) {
    run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], benchFolder);
  }
  if (!process.env.BENCH_DIST && isStale()) run('npx', ['nest', 'build'], rootFolder);
}

function isStale() {
  const entry = join(libraryFolder, 'index.js');
  return !existsSync(entry) || newest(join(rootFolder, 'lib')) > newest(libraryFolder);
}

function newest(folder) {
  const files = readdirSync(folder, { recursive: true });
  return Math.max(...files.map((file) => statSync(join(folder, file)).mtimeMs));
}

function run(command, args, cwd) {
  console.log(`${command} ${args.join(' ')}`);
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`);
}
