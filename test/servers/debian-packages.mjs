import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MIRROR = process.env.DEBIAN_MIRROR || 'http://deb.debian.org/debian';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Unpacks Debian packages, and all that they depend on, into a folder. Nothing is installed: apt works on a state and
 * on sources of its own, in which no package is installed, and of the system it has the proxy and the like alone. What is not
 * signed by Debian is refused.
 *
 * @param {{ suites: readonly string[], packages: readonly string[], into: string, scratch: string }} what - packages are
 * taken from the last of the suites, what they depend on from any
 */
export function unpackPackages({ suites, packages, into, scratch }) {
  for (const tool of ['apt-get', 'dpkg-deb']) {
    if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).status !== 0) {
      throw new Error(`There is no ${tool}: servers are fetched as Debian packages, on Debian.`);
    }
  }
  if (!existsSync(KEYRING)) {
    throw new Error(`There is no ${KEYRING}: \`apt-get install debian-archive-keyring\`.`);
  }
  const config = configure(suites, scratch);
  try {
    run('apt-get', ['-c', config, '-qq', '--error-on=any', 'update']);
    const wanted = packages.map((name) => `${name}/${suites.at(-1)}`);
    const how = ['-q', '-y', '--download-only', '--no-install-recommends'];
    run('apt-get', ['-c', config, ...how, 'install', ...wanted]);
    const archives = join(scratch, 'cache', 'archives');
    mkdirSync(into, { recursive: true });
    for (const name of readdirSync(archives).filter((file) => file.endsWith('.deb'))) {
      run('dpkg-deb', ['-x', join(archives, name), into]);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The hooks of the system's apt are about the system's packages. */
function configure(suites, scratch) {
  for (const folder of ['state/lists/partial', 'cache/archives/partial']) {
    mkdirSync(join(scratch, folder), { recursive: true });
  }
  const file = (name, text) => {
    writeFileSync(join(scratch, name), text);
    return join(scratch, name);
  };
  const sources = suites.map((suite) => `deb [signed-by=${KEYRING}] ${MIRROR} ${suite} main\n`);
  const settings = {
    'Dir::State': join(scratch, 'state'),
    'Dir::State::status': file('status', ''),
    'Dir::Cache': join(scratch, 'cache'),
    'Dir::Cache::archives': join(scratch, 'cache', 'archives'),
    'Dir::Etc::sourcelist': file('sources.list', sources.join('')),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::Etc::trusted': '/dev/null',
    'Dir::Etc::trustedparts': '/dev/null',
    'APT::Get::AllowUnauthenticated': 'false',
    'Acquire::AllowInsecureRepositories': 'false',
    'Acquire::Languages': 'none',
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} "${value}";\n`);
  const hooks = ['APT::Update::Pre-Invoke', 'APT::Update::Post-Invoke'].flatMap((name) => [
    `#clear ${name};\n`,
    `#clear ${name}-Success;\n`,
  ]);
  return file('apt.conf', [...lines, ...hooks].join(''));
}

function run(command, args) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (status === 0) return;
  const said = error?.message ?? `${stdout}${stderr}`.trim();
  throw new Error(`\`${command} ${args.at(-2)} ${args.at(-1)}\` failed.\n${said}`);
}
