import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * What the tests start themselves; openssl makes their certificates, and libfaketime steps a server's clock. `folders`:
 * where it may be besides PATH.
 */
const SERVERS = [
  { binary: 'redis-server', variable: 'REDIS_SERVER', debian: 'redis-server', brew: 'redis' },
  {
    binary: 'postgres',
    variable: 'POSTGRES_SERVER',
    debian: 'postgresql',
    brew: 'postgresql',
    folders: () => versionsIn('/usr/lib/postgresql').map((folder) => join(folder, 'bin')),
  },
  {
    binary: 'pgbouncer',
    variable: 'PGBOUNCER',
    debian: 'pgbouncer',
    brew: 'pgbouncer',
    folders: () => ['/usr/sbin'],
  },
  { binary: 'etcd', variable: 'ETCD_SERVER', debian: 'etcd-server', brew: 'etcd' },
  { binary: 'openssl', variable: 'OPENSSL', debian: 'openssl', brew: 'openssl' },
  {
    binary: process.platform === 'darwin' ? 'libfaketime.1.dylib' : 'libfaketime.so.1',
    variable: 'LIBFAKETIME',
    debian: 'libfaketime',
    brew: 'libfaketime',
    folders: libraryFolders,
    // Loaded, not executed.
    mode: constants.R_OK,
  },
];

/** What only those who ask for it need: `npm run model` checks its models with these. */
const TOOLS = [
  { binary: 'spin', variable: 'SPIN', debian: 'spin', brew: 'spin' },
  { binary: 'gcc', variable: 'C_COMPILER', debian: 'gcc libc6-dev', brew: 'gcc' },
];

/**
 * Finds the servers that the tests start, and names each in its variable for the processes that are started from
 * here. Installs what is missing where that needs no question asked: root on Debian.
 */
export function ensureServers(names = SERVERS.map(({ binary }) => binary)) {
  const wanted = [...SERVERS, ...TOOLS].filter(({ binary }) => names.includes(binary));
  const missing = wanted.filter((server) => find(server) === undefined);
  if (missing.length > 0) install(missing);
  for (const server of wanted) {
    const path = find(server);
    if (path === undefined) throw new Error(howToInstall(server));
    process.env[server.variable] = path;
  }
}

/** The path of redis-server alone. */
export function ensureRedisServer() {
  ensureServers(['redis-server']);
  return process.env.REDIS_SERVER;
}

const howToInstall = ({ binary, variable, debian, brew }) =>
  `Needed here is ${binary}, and there is none. Install it (Debian, Ubuntu: \`apt-get install ${debian}\`; ` +
  `macOS: \`brew install ${brew}\`), or name the binary in ${variable}.`;

function find({ binary, variable, folders = () => [], mode = constants.X_OK }) {
  const named = process.env[variable];
  if (named) {
    if (mayUse(named, mode)) return named;
    throw new Error(`${variable} names ${named}, which cannot be used as ${binary}.`);
  }
  return findIn(binary, folders(), mode);
}

function findIn(binary, more = [], mode = constants.X_OK) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', ...more];
  return folders
    .filter(Boolean)
    .map((folder) => join(folder, binary))
    .find((path) => mayUse(path, mode));
}

/** The newest first. */
function versionsIn(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(folder, version));
}

/** Those of any architecture: there is one of them on a machine. */
function libraryFolders() {
  const roots = ['/usr/lib', '/usr/local/lib', '/opt/homebrew/lib'].filter((root) =>
    existsSync(root),
  );
  const ofArchitectures = roots.flatMap((root) =>
    readdirSync(root)
      .filter((name) => name.endsWith('-linux-gnu'))
      .map((name) => join(root, name)),
  );
  return [...ofArchitectures, ...roots].map((folder) => join(folder, 'faketime'));
}

function mayUse(path, mode) {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function install(servers) {
  const apt = findIn('apt-get');
  const help = servers.map(howToInstall).join('\n');
  if (!apt || !existsSync('/etc/debian_version') || process.getuid?.() !== 0) throw new Error(help);
  const packages = servers.flatMap(({ debian }) => debian.split(' '));
  console.log(`not found, installing the Debian packages: ${packages.join(', ')}`);
  withoutServiceStart(() => {
    run(apt, ['update', '-qq'], help);
    run(apt, ['install', '-y', '-qq', '--no-install-recommends', ...packages], help);
  });
}

function run(command, args, help) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    // RUNLEVEL=1 keeps init scripts from starting a service where policy-rc.d is not ours.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (status === 0) return;
  const said = error?.message ?? `${stdout}${stderr}`.trim();
  throw new Error(`\`${command} ${args.join(' ')}\` failed.\n${said}\n${help}`);
}

/** A package would start its server on the usual port; Debian asks this file before it does. */
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
