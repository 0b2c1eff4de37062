import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  dieWithParent,
  freePort,
  hasExited,
  ownFolder,
  PASSWORD,
  serverUser,
  signal,
  type PostgresServer,
} from './postgres-server.js';
import { realProcess } from './real-process.js';
import { until } from './until.js';

export interface PgBouncerOptions {
  /** For how long a client has a connection of the server to itself. */
  mode?: 'transaction' | 'session';
  /** Connections to the server, for however many clients. */
  poolSize?: number;
}

/** Starts a pooler of the test's own in front of a server: loopback only. */
export async function startPgBouncer(
  server: PostgresServer,
  { mode = 'transaction', poolSize = 2 }: PgBouncerOptions = {},
): Promise<PgBouncer> {
  const dir = ownFolder('nestjs-lease-pgbouncer-');
  const port = await freePort();
  const users = join(dir, 'users.txt');
  writeFileSync(users, `"postgres" "${PASSWORD}"\n`);
  const ini = join(dir, 'pgbouncer.ini');
  writeFileSync(
    ini,
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = ${poolSize}
; As soon as a server is back: a test does not wait for the usual 15 s.
server_login_retry = 0.05
`,
  );
  const bouncer = new PgBouncer(port, dir, ini);
  await bouncer.start();
  return bouncer;
}

export class PgBouncer {
  #child: ChildProcess | undefined;
  readonly #quitOnExit = (): void => this.#quit();

  constructor(
    readonly port: number,
    private readonly dir: string,
    private readonly ini: string,
  ) {}

  get url(): string {
    return `postgres://postgres:${PASSWORD}@127.0.0.1:${this.port}/postgres`;
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    const [command, ...args] = [
      ...dieWithParent(),
      process.env['PGBOUNCER'] ?? '/usr/sbin/pgbouncer',
      this.ini,
    ];
    const log = openSync(this.#log, 'w');
    const stdio = ['ignore', log, log] as const;
    const child = spawn(command!, args, { stdio: [...stdio], cwd: '/', ...serverUser() });
    closeSync(log);
    child.unref();
    child.on('error', () => undefined);
    this.#child = child;
    realProcess.on('exit', this.#quitOnExit);
    await until(() => hasExited(child) || this.log.includes('process up'), { within: 20_000 });
    if (hasExited(child)) throw new Error(`pgbouncer on port ${this.port} ended.\n${this.log}`);
  }

  get log(): string {
    return readFileSync(this.#log, 'utf8');
  }

  async kill(): Promise<void> {
    realProcess.off('exit', this.#quitOnExit);
    const child = this.#child;
    if (child === undefined || hasExited(child)) return;
    child.ref();
    const exit = once(child, 'exit');
    this.#quit();
    await exit;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  #quit(): void {
    if (this.#child?.pid !== undefined) signal(this.#child.pid, 'SIGQUIT');
  }

  get #log(): string {
    return join(this.dir, 'pgbouncer.log');
  }
}
