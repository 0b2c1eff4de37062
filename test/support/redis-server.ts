import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
// Not the globals, which a test may have faked.
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { realProcess } from './real-process.js';

export interface RedisServerOptions {
  /** More arguments of redis-server. They come last, and so override those given here. */
  args?: readonly string[];
  /** @default a free port */
  port?: number;
  /** A configuration file of its own. */
  config?: string;
  /** Of a node of a cluster, which also listens on its port and 10000. */
  hasBusPort?: boolean;
  /** Variables of its environment, besides ours. */
  env?: Readonly<Record<string, string>>;
}

const START_TIMEOUT = 10_000;
const PORT_ATTEMPTS = 10;

/** Starts a redis-server of the test's own: loopback only, empty, nothing on disk. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort(options.hasBusPort === true));
    const server = new RedisServer(port, options.args ?? [], options.config, options.env);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Between finding a free port and listening on it somebody else may have taken it.
      const tryAnother = error instanceof PortTakenError && options.port === undefined;
      if (!tryAnother || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

export class RedisServer {
  readonly #args: readonly string[];
  readonly #dir = mkdtempSync(join(tmpdir(), 'nestjs-lease-redis-'));
  readonly #killOnExit = (): void => void this.#child?.kill('SIGKILL');
  #child: ChildProcess | undefined;

  constructor(
    readonly port: number,
    args: readonly string[],
    private readonly config?: string,
    private readonly env: Readonly<Record<string, string>> = {},
  ) {
    this.#args = args;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Of the running process. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('This redis-server is not running.');
    return pid;
  }

  /** Freezes it: connections stay open, nothing is answered. Resolves when it stands still. */
  async pause(): Promise<void> {
    this.#signal('SIGSTOP');
    while (processState(this.pid) !== 'T') await setTimeout(1);
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  /** Ends it as a crash would. Resolves when the process is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    realProcess.off('exit', this.#killOnExit);
    if (hasExited(child)) return;
    child.ref();
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** A new, empty server on the same port. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const child = this.#spawn();
    this.#child = child;
    realProcess.on('exit', this.#killOnExit);
    const deadline = performance.now() + START_TIMEOUT;
    while (!(await isAnsweredBy(this.port, child.pid))) {
      if (hasExited(child)) throw this.#startError('ended at once');
      if (performance.now() > deadline)
        throw this.#startError(`gave no answer in ${START_TIMEOUT} ms`);
      await setTimeout(5);
    }
  }

  #spawn(): ChildProcess {
    const redis = process.env['REDIS_SERVER'] ?? 'redis-server';
    const where = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.#dir];
    const nothingOnDisk = ['--save', '', '--appendonly', 'no'];
    const [command, ...args] = [
      ...dieWithParent(),
      redis,
      ...(this.config === undefined ? [] : [this.config]),
      ...where,
      ...nothingOnDisk,
      ...this.#args,
    ];
    const log = openSync(this.#log, 'w');
    try {
      const env = { ...process.env, ...this.env };
      const child = spawn(command!, args, { stdio: ['ignore', log, log], env });
      // A test that forgets to stop its server must not hang; an error of spawn shows as an exit.
      child.unref();
      child.on('error', () => undefined);
      return child;
    } finally {
      closeSync(log);
    }
  }

  #signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  get #log(): string {
    return join(this.#dir, 'redis.log');
  }

  #startError(what: string): Error {
    const log = readFileSync(this.#log, 'utf8').trim();
    const message = `redis-server on port ${this.port} ${what}.\n${log}`;
    return log.includes('Address already in use')
      ? new PortTakenError(message)
      : new Error(message);
  }
}

class PortTakenError extends Error {}

/** The kernel kills the server with a test process that is itself killed, where no exit handler runs. */
function dieWithParent(): string[] {
  const setpriv = '/usr/bin/setpriv';
  return existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL'] : [];
}

function hasExited(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

/** One letter of /proc, or 'T' (stopped) where there is no /proc to ask. */
function processState(pid: number): string | undefined {
  try {
    return / ([A-Z]) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, ''))?.[1];
  } catch {
    return 'T';
  }
}

/** @param hasBusPort - also the port that is 10000 higher is free */
export async function freePort(hasBusPort: boolean): Promise<number> {
  for (;;) {
    const port = await listenOn(0);
    if (port !== undefined && (!hasBusPort || (await isBusPortFree(port)))) return port;
  }
}

const isBusPortFree = async (port: number): Promise<boolean> =>
  port + 10_000 < 65_536 && (await listenOn(port + 10_000)) !== undefined;

/** The port, or nothing when it is taken. */
async function listenOn(wanted: number): Promise<number | undefined> {
  const server = createServer().listen(wanted, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return undefined;
  }
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Whether a server answers there, and is that process and not somebody else's on the same port. */
async function isAnsweredBy(port: number, pid: number | undefined): Promise<boolean> {
  try {
    const answer = await ask(port, 'PING\r\nINFO server\r\n', /process_id:\d+\r\n|^-NOAUTH/);
    return answer.startsWith('-NOAUTH') || answer.includes(`process_id:${pid}\r\n`);
  } catch {
    return false;
  }
}

/** Raw, so that a test of a client does not depend on that client. */
async function ask(port: number, request: string, until: RegExp): Promise<string> {
  const socket = connect(port, '127.0.0.1').setTimeout(500).setEncoding('utf8');
  socket.once('timeout', () => socket.destroy(new Error('timeout')));
  socket.write(request);
  let answer = '';
  for await (const chunk of socket) {
    answer += chunk as string;
    if (until.test(answer)) break;
  }
  return answer;
}
