import { execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { ensureServers } from '../../test/support/find-servers.mjs';
import { sleep } from './clock.mjs';

const servers = new Set();

/**
 * The shell stands between us and the server only to end it when we are gone, however we went: its input closes
 * with us. It names the server's own process first.
 */
const GUARD = '"$@" >/dev/null 2>&1 & echo $!; read -r _; kill -9 $! 2>/dev/null; wait';

/** A redis-server of the benchmark's own: loopback, a free port, nothing on disk. */
export async function startRedis() {
  ensureServers(['redis-server']);
  const port = await freePort();
  const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: '/tmp' };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return start(process.env.REDIS_SERVER, args, { port });
}

/** A PostgreSQL of the benchmark's own, as durable as a user's: it does wait for the disk. */
export async function startPostgres() {
  ensureServers(['postgres']);
  const port = await freePort();
  const binary = realpathSync(process.env.POSTGRES_SERVER);
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-lease-bench-postgres-'));
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? idsOf('postgres') : {};
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const initdb = join(dirname(binary), 'initdb');
  execFileSync(initdb, ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--locale', 'C'], {
    ...user,
    cwd: folder,
    stdio: 'ignore',
  });
  const args = ['-D', data, '-p', `${port}`, '-h', '127.0.0.1', '-k', folder];
  const server = await start(binary, args, { port, folder, ...user });
  await until(() => isReady(data), binary);
  return { ...server, url: `postgres://bench@127.0.0.1:${port}/postgres` };
}

/** One etcd of the benchmark's own. */
export async function startEtcd() {
  ensureServers(['etcd']);
  const [port, peerPort] = [await freePort(), await freePort()];
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-lease-bench-etcd-'));
  const [url, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const options = {
    name: 'one',
    'data-dir': join(folder, 'data'),
    'listen-client-urls': url,
    'advertise-client-urls': url,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `one=${peer}`,
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const server = await start(process.env.ETCD_SERVER, args, { port, folder });
  return { ...server, url };
}

async function start(binary, args, { port, folder, uid, gid }) {
  // A group of its own: Ctrl-C is for us, and we stop what we started.
  const guard = spawn('sh', ['-c', GUARD, 'sh', binary, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
    ...(uid === undefined ? {} : { uid, gid }),
    ...(folder === undefined ? {} : { cwd: folder }),
  });
  const pid = await new Promise((resolve, reject) => {
    createInterface(guard.stdout).once('line', (line) => resolve(Number(line)));
    guard.once('error', reject);
  });
  const exited = new Promise((resolve) => guard.once('exit', resolve));
  const server = {
    port,
    pid,
    freeze: () => process.kill(pid, 'SIGSTOP'),
    thaw: () => process.kill(pid, 'SIGCONT'),
    async stop() {
      servers.delete(server);
      guard.stdin.destroy();
      await exited;
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
    },
  };
  servers.add(server);
  await until(() => isListening(port), binary);
  return server;
}

export const stopAllServers = () => Promise.all([...servers].map((server) => server.stop()));

function idsOf(user) {
  const id = (flag) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

const isListening = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** PostgreSQL listens before it lets anybody in. */
const isReady = (data) =>
  readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[7]?.trim() === 'ready';

async function until(isUp, binary) {
  for (let tries = 0; tries < 500; tries++) {
    if (await isUp()) return;
    await sleep(10);
  }
  throw new Error(`${binary} did not start.`);
}
