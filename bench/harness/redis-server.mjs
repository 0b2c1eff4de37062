import { spawn } from 'node:child_process';
import { createServer, connect } from 'node:net';
import { createInterface } from 'node:readline';
import { sleep } from './clock.mjs';

const servers = new Set();

/**
 * The shell stands between us and the server only to end it when we are gone, however we went: its input closes
 * with us. It names the server's own process first.
 */
const GUARD = '"$@" >/dev/null 2>&1 & echo $!; read -r _; kill -9 $! 2>/dev/null';

/** A redis-server of the benchmark's own: loopback, a free port, nothing on disk. */
export async function startRedis() {
  const port = await freePort();
  const binary = process.env.REDIS_SERVER ?? 'redis-server';
  const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: '/tmp' };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  // A group of its own: Ctrl-C is for us, and we stop what we started.
  const guard = spawn('sh', ['-c', GUARD, 'sh', binary, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const pid = await new Promise((resolve, reject) => {
    createInterface(guard.stdout).once('line', (line) => resolve(Number(line)));
    guard.once('error', reject);
  });
  const server = {
    port,
    pid,
    freeze: () => process.kill(pid, 'SIGSTOP'),
    thaw: () => process.kill(pid, 'SIGCONT'),
    stop() {
      servers.delete(server);
      guard.stdin.destroy();
      return guard.exitCode === null ? new Promise((done) => guard.once('exit', done)) : undefined;
    },
  };
  servers.add(server);
  await listening(port);
  return server;
}

export const stopAllRedis = () => Promise.all([...servers].map((server) => server.stop()));

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function listening(port) {
  for (let tries = 0; tries < 200; tries++) {
    const isUp = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isUp) return;
    await sleep(10);
  }
  throw new Error('redis-server did not start. Is it installed, or named in REDIS_SERVER?');
}
