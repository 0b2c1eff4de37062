import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
// Not the globals, which a test may have faked.
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { realProcess } from './real-process.js';

export interface PostgresServerOptions {
  /** Settings as of postgresql.conf. They come last, and so override those given here. */
  settings?: Readonly<Record<string, string | number>>;
  /** A port of the server whose hot standby it is: by way of a proxy, where its replication is to be cut. */
  standbyOf?: number;
  /** A network namespace to run in, open to all who are there. Needs root. */
  namespace?: string;
}

const START_TIMEOUT = 20_000;
const PORT_ATTEMPTS = 10;
export const PASSWORD = 'secret-of-postgres';

/** Starts a PostgreSQL of the test's own: loopback only, empty, its data in a folder that goes with it. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  for (let attempt = 1; ; attempt++) {
    const server = new PostgresServer(await freePort(), options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Between finding a free port and listening on it somebody else may have taken it.
      if (!(error instanceof PortTakenError) || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

export class PostgresServer {
  readonly #dir = ownFolder('nestjs-lease-postgres-');
  readonly #data = join(this.#dir, 'data');
  readonly #quitOnExit = (): void => this.#quit();
  #child: ChildProcess | undefined;

  constructor(
    readonly port: number,
    private readonly options: PostgresServerOptions,
  ) {}

  get url(): string {
    return this.urlOf('postgres', PASSWORD);
  }

  urlOf(user: string, password: string, database = 'postgres'): string {
    return `postgres://${user}:${password}@127.0.0.1:${this.port}/${database}`;
  }

  /** Of the running postmaster. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('This PostgreSQL is not running.');
    return pid;
  }

  /** Freezes all of it: connections stay open, nothing is answered. Resolves when it stands still. */
  async pause(): Promise<void> {
    // The one that starts others first; what it had just started is found by looking again.
    for (let count = 0; count !== this.#pids().length;) {
      count = this.#pids().length;
      for (const pid of this.#pids()) signal(pid, 'SIGSTOP');
      while (!this.#pids().every((pid) => processState(pid) === 'T')) await setTimeout(1);
    }
  }

  resume(): void {
    for (const pid of this.#pids().toReversed()) signal(pid, 'SIGCONT');
  }

  /** Ends it as a crash would. Resolves when the process is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    realProcess.off('exit', this.#quitOnExit);
    if (!hasExited(child)) {
      child.ref();
      const exit = once(child, 'exit');
      this.#quit();
      await exit;
    }
    this.#child = undefined;
  }

  /** After a crash, with its data, on the same port. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** A new, empty server on the same port. */
  async restartEmpty(): Promise<void> {
    await this.kill();
    rmSync(this.#data, { recursive: true, force: true });
    await this.start();
  }

  /** Of a standby: a primary of its own from now on. Resolves when it writes. */
  promote(): void {
    execute('pg_ctl', ['promote', '-w', '-D', this.#data]);
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    if (!existsSync(this.#data)) {
      if (this.options.standbyOf === undefined) copyTemplate(this.#data);
      else await copyServer(this.options.standbyOf, this.#data);
    }
    const child = this.#spawn();
    this.#child = child;
    realProcess.on('exit', this.#quitOnExit);
    const deadline = performance.now() + START_TIMEOUT;
    while (!this.#isReady()) {
      if (hasExited(child)) throw this.#startError('ended at once');
      if (performance.now() > deadline) {
        throw this.#startError(`was not ready in ${START_TIMEOUT} ms`);
      }
      await setTimeout(5);
    }
  }

  #spawn(): ChildProcess {
    const { namespace } = this.options;
    const settings = {
      listen_addresses: namespace === undefined ? '127.0.0.1' : '*',
      unix_socket_directories: '',
      fsync: 'off',
      full_page_writes: 'off',
      shared_buffers: '16MB',
      ...this.options.settings,
    };
    if (namespace !== undefined) {
      writeFileSync(join(this.#data, 'pg_hba.conf'), 'host all all all scram-sha-256\n');
    }
    const [command, ...args] = [
      ...(namespace === undefined ? dieWithParent() : dieInside(namespace)),
      program('postgres'),
      '-D',
      this.#data,
      '-p',
      `${this.port}`,
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ];
    const log = openSync(this.#log, 'w');
    try {
      const child = spawn(command!, args, {
        stdio: ['ignore', log, log],
        cwd: '/',
        ...(namespace === undefined ? serverUser() : {}),
      });
      // A test that forgets to stop its server must not hang; an error of spawn shows as an exit.
      child.unref();
      child.on('error', () => undefined);
      return child;
    } finally {
      closeSync(log);
    }
  }

  /** What it wrote to its log since it was started. */
  get log(): string {
    return readFileSync(this.#log, 'utf8');
  }

  /** It says so itself, in a file: a test of a client does not depend on that client. */
  #isReady(): boolean {
    try {
      const lines = readFileSync(join(this.#data, 'postmaster.pid'), 'utf8').split('\n');
      return lines[0] === `${this.#child?.pid}` && lines[7]?.trim() === 'ready';
    } catch {
      return false;
    }
  }

  /** An immediate shutdown: no checkpoint, the same as a crash but that no shared memory is left. */
  #quit(): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    signal(pid, 'SIGQUIT');
    this.resume();
  }

  #pids(): number[] {
    return [this.pid, ...childrenOf(this.pid)];
  }

  get #log(): string {
    return join(this.#dir, 'postgres.log');
  }

  #startError(what: string): Error {
    const log = this.log.trim();
    const message = `PostgreSQL on port ${this.port} ${what}.\n${log}`;
    return log.includes('could not bind') ? new PortTakenError(message) : new Error(message);
  }
}

class PortTakenError extends Error {}

/** initdb takes most of a second: once for all tests of this process, then copied. */
function copyTemplate(to: string): void {
  const shared = realProcess as typeof realProcess & { postgresTemplate?: string };
  shared.postgresTemplate ??= makeTemplate();
  // Not cpSync, which is several times slower with a thousand files. Keeps whose they are.
  const copied = spawnSync('cp', ['-a', shared.postgresTemplate, to], { encoding: 'utf8' });
  if (copied.status !== 0) throw new Error(`cp failed.\n${copied.error ?? copied.stderr}`);
}

function makeTemplate(): string {
  const dir = ownFolder('nestjs-lease-initdb-');
  realProcess.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  const data = join(dir, 'data');
  const password = join(dir, 'password');
  writeFileSync(password, PASSWORD);
  const where = ['-D', data, '-U', 'postgres', '--pwfile', password];
  const how = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--wal-segsize=1', '-N'];
  execute('initdb', [...where, ...how]);
  return data;
}

/** What a hot standby begins with, and how it goes on from there. A proxy of this process may be in between. */
async function copyServer(port: number, to: string): Promise<void> {
  const from = `host=127.0.0.1 port=${port} user=postgres password=${PASSWORD}`;
  const args = ['-D', to, '-d', from, '--checkpoint=fast', '--write-recovery-conf'];
  await promisify(execFile)(program('pg_basebackup'), args, { cwd: '/', ...serverUser() });
}

function execute(name: string, args: string[]): void {
  const { status, error, stderr } = spawnSync(program(name), args, {
    cwd: '/',
    encoding: 'utf8',
    ...serverUser(),
  });
  if (status !== 0) throw new Error(`${name} failed.\n${error ?? stderr}`);
}

/** Beside the server, which may be named by a link from elsewhere. */
function program(name: string): string {
  const server = realpathSync(process.env['POSTGRES_SERVER'] ?? '/usr/bin/postgres');
  return join(dirname(server), name);
}

/** PostgreSQL refuses to run as root: then as its own user, or as nobody. */
export function serverUser(): { uid?: number; gid?: number } {
  if (realProcess.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    const line = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm');
    const found = line.exec(readFileSync('/etc/passwd', 'utf8'));
    if (found !== null) return { uid: Number(found[1]), gid: Number(found[2]) };
  }
  throw new Error('PostgreSQL does not run as root, and there is no other user to run it as.');
}

export function ownFolder(prefix: string): string {
  const dir = mkdtempSync(join(tmpdir(), prefix));
  const { uid, gid } = serverUser();
  if (uid !== undefined) chownSync(dir, uid, gid!);
  return dir;
}

/** The kernel ends the server with a test process that is itself killed, where no exit handler runs. */
export function dieWithParent(): string[] {
  const setpriv = '/usr/bin/setpriv';
  return existsSync(setpriv) ? [setpriv, '--pdeathsig', 'QUIT'] : [];
}

/** To enter a namespace is root's; what runs there is not. */
function dieInside(namespace: string): string[] {
  const { uid, gid } = serverUser();
  const user = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  return ['ip', 'netns', 'exec', namespace, 'setpriv', ...user, '--pdeathsig', 'QUIT'];
}

export function hasExited(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    realProcess.kill(pid, name);
  } catch {
    // It is gone.
  }
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    const { stdout } = spawnSync('pgrep', ['-P', `${pid}`], { encoding: 'utf8' });
    return (stdout ?? '').split('\n').filter(Boolean).map(Number);
  }
}

/** One letter of /proc, or 'T' (stopped) where there is no /proc to ask. */
function processState(pid: number): string | undefined {
  try {
    return / ([A-Z]) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, ''))?.[1];
  } catch {
    return 'T';
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
