import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
// Not the globals, which a test may have faked.
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { realProcess } from './real-process.js';

export interface EtcdServerOptions {
  /** More arguments of etcd. */
  args?: readonly string[];
  /** How clients reach it. */
  scheme?: 'http' | 'https';
}

const START_TIMEOUT = 15_000;
const PORT_ATTEMPTS = 10;

/** Starts an etcd of one member: loopback only, empty, its data in memory where the machine has a place for that. */
export async function startEtcd(options: EtcdServerOptions = {}): Promise<EtcdMember> {
  const cluster = await startEtcdCluster(1, options);
  return cluster.members[0]!;
}

/** Starts so many members that form a cluster. */
export async function startEtcdCluster(
  size: number,
  options: EtcdServerOptions = {},
): Promise<EtcdCluster> {
  for (let attempt = 1; ; attempt++) {
    const cluster = await EtcdCluster.of(size, options);
    try {
      await cluster.start();
      return cluster;
    } catch (error) {
      await cluster.stop();
      // Between finding a free port and listening on it somebody else may have taken it.
      if (!(error instanceof PortTakenError) || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

interface Ports {
  readonly client: number;
  readonly peer: number;
}

export class EtcdCluster {
  readonly members: readonly EtcdMember[];

  static async of(size: number, options: EtcdServerOptions): Promise<EtcdCluster> {
    const ports = await freePorts(2 * size);
    return new EtcdCluster(
      Array.from({ length: size }, (_, i) => ({ client: ports[2 * i]!, peer: ports[2 * i + 1]! })),
      options,
    );
  }

  constructor(ports: readonly Ports[], options: EtcdServerOptions) {
    const peers = ports.map(({ peer }, i) => `m${i}=http://127.0.0.1:${peer}`).join(',');
    this.members = ports.map((its, i) => new EtcdMember(`m${i}`, its, peers, options));
  }

  get urls(): string[] {
    return this.members.map(({ url }) => url);
  }

  async start(): Promise<void> {
    await Promise.all(this.members.map((member) => member.start()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
  }

  /** Whom the members call the leader; waits until there is one. */
  async leader(): Promise<EtcdMember> {
    const deadline = performance.now() + START_TIMEOUT;
    while (performance.now() < deadline) {
      for (const member of this.members) {
        const status = member.isRunning ? await member.status() : undefined;
        if (status !== undefined && status.leader === status.id) return member;
      }
      await setTimeout(10);
    }
    throw new Error('No member is the leader.');
  }

  async followers(): Promise<readonly EtcdMember[]> {
    const leader = await this.leader();
    return this.members.filter((member) => member !== leader);
  }
}

export class EtcdMember {
  readonly #dir = mkdtempSync(
    join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'nestjs-lease-etcd-'),
  );
  readonly #killOnExit = (): void => void this.#child?.kill('SIGKILL');
  #child: ChildProcess | undefined;
  #isPaused = false;

  constructor(
    readonly name: string,
    private readonly ports: Ports,
    private readonly peers: string,
    private readonly options: EtcdServerOptions,
  ) {}

  get port(): number {
    return this.ports.client;
  }

  get url(): string {
    return `${this.options.scheme ?? 'http'}://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('This etcd is not running.');
    return pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && !this.#isPaused;
  }

  /** Stops it so that it keeps its connections, takes requests and answers nothing. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    process.kill(this.pid, 'SIGSTOP');
    while (processState(this.pid) !== 'T') await setTimeout(1);
  }

  resume(): void {
    if (this.#child !== undefined) process.kill(this.pid, 'SIGCONT');
    this.#isPaused = false;
  }

  /** Ends it as a crash would; its data stay. Resolves when the process is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    this.#isPaused = false;
    realProcess.off('exit', this.#killOnExit);
    if (hasExited(child)) return;
    child.ref();
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** With the data that it has. Resolves when it is part of a cluster that has a leader. */
  async start(): Promise<void> {
    const child = this.#spawn();
    this.#child = child;
    realProcess.on('exit', this.#killOnExit);
    const deadline = performance.now() + START_TIMEOUT;
    while (!(await this.#isReady())) {
      if (hasExited(child)) throw this.#startError('ended at once');
      if (performance.now() > deadline) throw this.#startError('is not ready');
      await setTimeout(10);
    }
  }

  /** Of itself, without the others; nothing when it does not say. */
  async status(): Promise<{ id: string; leader: string; revision: number } | undefined> {
    const answer = await this.post('v3/maintenance/status', {}).catch(() => undefined);
    if (answer === undefined || typeof answer['leader'] !== 'string') return undefined;
    const { member_id: id, revision } = answer['header'] as Record<string, string>;
    return { id: id!, leader: answer['leader'], revision: Number(revision) };
  }

  /** Raw, so that a test of a client does not depend on that client. */
  async post(path: string, body: object, token?: string): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.url}/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      ...(token === undefined ? {} : { headers: { authorization: token } }),
      signal: AbortSignal.timeout(2_000),
    });
    return (await response.json()) as Record<string, unknown>;
  }

  async #isReady(): Promise<boolean> {
    const log = readFileSync(this.#log, 'utf8');
    if (!log.includes('serving client traffic')) return false;
    // A client certificate may be needed to ask it anything.
    if (this.options.scheme === 'https') return true;
    // Where users sign in, newer ones tell their leader to nobody else; that they have one they tell anybody.
    return Number((await this.status())?.leader ?? 0) > 0 || this.#isHealthy();
  }

  #isHealthy(): Promise<boolean> {
    return fetch(`${this.url}/health`, { signal: AbortSignal.timeout(2_000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  #spawn(): ChildProcess {
    const { client, peer } = this.ports;
    const { scheme = 'http', args = [] } = this.options;
    const isNew = !existsSync(join(this.#dir, 'data'));
    const flags: Record<string, string> = {
      name: this.name,
      'data-dir': join(this.#dir, 'data'),
      'listen-client-urls': `${scheme}://127.0.0.1:${client}`,
      'advertise-client-urls': `${scheme}://127.0.0.1:${client}`,
      'listen-peer-urls': `http://127.0.0.1:${peer}`,
      'initial-advertise-peer-urls': `http://127.0.0.1:${peer}`,
      'initial-cluster': this.peers,
      'initial-cluster-state': isNew ? 'new' : 'existing',
      // The least time of a lease is one and a half of the latter, in whole seconds: 1 s.
      'heartbeat-interval': '60',
      'election-timeout': '600',
      logger: 'zap',
    };
    const [command, ...rest] = [
      ...dieWithParent(),
      process.env['ETCD_SERVER'] ?? 'etcd',
      ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
      ...args,
    ];
    const log = openSync(this.#log, 'w');
    try {
      const child = spawn(command!, rest, { stdio: ['ignore', log, log] });
      // A test that forgets to stop its server must not hang; an error of spawn shows as an exit.
      child.unref();
      child.on('error', () => undefined);
      return child;
    } finally {
      closeSync(log);
    }
  }

  get #log(): string {
    return join(this.#dir, 'etcd.log');
  }

  #startError(what: string): Error {
    const log = readFileSync(this.#log, 'utf8').trim();
    const message = `etcd on port ${this.port} ${what}.\n${log.slice(-2_000)}`;
    return log.includes('address already in use')
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

/** All at once, so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  const ports = await Promise.all(
    servers.map(async (server) => {
      await once(server, 'listening');
      return (server.address() as AddressInfo).port;
    }),
  );
  await Promise.all(
    servers.map(async (server) => {
      server.close();
      await once(server, 'close');
    }),
  );
  return ports;
}
