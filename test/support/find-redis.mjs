import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const HOW_TO_INSTALL =
  'The tests start their own redis-server and found none. Install it (Debian, Ubuntu: ' +
  '`apt-get install redis-server`; macOS: `brew install redis`), or name the binary in REDIS_SERVER.';

/**
 * The path of redis-server, also in REDIS_SERVER for the processes that are started from here. Installs it
 * where that needs no question asked: root on Debian.
 */
export function ensureRedisServer() {
  const path = findRedisServer() ?? installRedisServer();
  process.env.REDIS_SERVER = path;
  return path;
}

function findRedisServer() {
  const named = process.env.REDIS_SERVER;
  if (named) {
    if (isExecutable(named)) return named;
    throw new Error(`REDIS_SERVER names ${named}, which cannot be executed.`);
  }
  return findInPath('redis-server');
}

function findInPath(binary) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin'];
  return folders
    .filter(Boolean)
    .map((folder) => join(folder, binary))
    .find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function installRedisServer() {
  const apt = findInPath('apt-get');
  if (!apt || !existsSync('/etc/debian_version') || process.getuid?.() !== 0) {
    throw new Error(HOW_TO_INSTALL);
  }
  console.log('redis-server not found: installing the Debian package');
  withoutServiceStart(() => {
    run(apt, ['update', '-qq']);
    run(apt, ['install', '-y', '-qq', '--no-install-recommends', 'redis-server']);
  });
  const installed = findInPath('redis-server');
  if (!installed) throw new Error(HOW_TO_INSTALL);
  return installed;
}

function run(command, args) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    // RUNLEVEL=1 keeps init scripts from starting a service where policy-rc.d is not ours.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (status === 0) return;
  const said = error?.message ?? `${stdout}${stderr}`.trim();
  throw new Error(`\`${command} ${args.join(' ')}\` failed.\n${said}\n${HOW_TO_INSTALL}`);
}

/** The package would start a server on port 6379; Debian asks this file before it does. */
function withoutServiceStart(work) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    work();
  } finally {
    if (ours) rmSync(policy, { force: true });
  }
}
