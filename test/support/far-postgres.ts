import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { startFaultProxy } from './fault-proxy.js';
import { PASSWORD, startPostgres, type PostgresServer } from './postgres-server.js';
import { realProcess } from './real-process.js';

/** A server to which two ways lead. On one of them everything can vanish, without a word to either end. */
export interface FarPostgres {
  /** By the way that can be cut. */
  readonly url: string;
  /** By the other. */
  readonly otherUrl: string;
  /** From now on nothing arrives, in either direction, and nobody is told. */
  vanish(): void;
  /** The server has waited long enough. Where it can find out by itself, nothing is done here. */
  giveUp(): void;
  close(): Promise<void>;
}

/** In a network namespace of its own where that is possible; else behind a proxy, whose end is the server's noticing. */
export const startFarPostgres = (): Promise<FarPostgres> =>
  canMakeNamespaces() ? startInNamespace() : startBehindProxy();

const canMakeNamespaces = (): boolean =>
  realProcess.platform === 'linux' &&
  realProcess.getuid?.() === 0 &&
  ['ip', 'setpriv'].every((name) => spawnSync(name, ['-V']).status === 0) &&
  run('ip', 'netns', 'list') === 0 &&
  tryNamespace();

function tryNamespace(): boolean {
  const name = `nestjs-lease-try-${realProcess.pid}`;
  if (run('ip', 'netns', 'add', name) !== 0) return false;
  run('ip', 'netns', 'del', name);
  return true;
}

async function startInNamespace(): Promise<FarPostgres> {
  const id = randomInt(32);
  const name = `nestjs-lease-${id}`;
  const remove = (): void => void run('ip', 'netns', 'del', name);
  must('netns', 'add', name);
  realProcess.once('exit', remove);
  let server: PostgresServer;
  try {
    must('-n', name, 'link', 'set', 'lo', 'up');
    // Of a range that is for documentation: it leads nowhere else.
    const cut = link(name, `nl${id}a`, `198.51.100.${id * 8}`);
    const other = link(name, `nl${id}b`, `198.51.100.${id * 8 + 4}`);
    server = await startPostgres({ namespace: name });
    return {
      url: urlOf(cut.far, server.port),
      otherUrl: urlOf(other.far, server.port),
      vanish: cut.vanish,
      giveUp: () => undefined,
      close: async () => {
        await server.stop();
        remove();
        realProcess.off('exit', remove);
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** A pair of network cards. */
function link(namespace: string, card: string, net: string): { far: string; vanish: () => void } {
  const [start, last] = [net.replace(/\d+$/, ''), Number(/\d+$/.exec(net)![0])];
  const [near, far] = [`${start}${last + 1}`, `${start}${last + 2}`];
  must('link', 'add', card, 'type', 'veth', 'peer', 'name', 'far', 'netns', namespace);
  // Both pairs have their ends in the same namespace.
  must('-n', namespace, 'link', 'set', 'far', 'name', card);
  must('address', 'add', `${near}/30`, 'dev', card);
  must('-n', namespace, 'address', 'add', `${far}/30`, 'dev', card);
  must('link', 'set', card, 'up');
  must('-n', namespace, 'link', 'set', card, 'up');
  const nobody = ['lladdr', '02:00:00:00:00:01', 'dev', card, 'nud', 'permanent'];
  return {
    far,
    // To a card that does not exist: no error, no answer.
    vanish: () => {
      must('neighbour', 'replace', far, ...nobody);
      must('-n', namespace, 'neighbour', 'replace', near, ...nobody);
    },
  };
}

async function startBehindProxy(): Promise<FarPostgres> {
  const server = await startPostgres();
  const proxy = await startFaultProxy(server.port);
  return {
    url: urlOf('127.0.0.1', proxy.port),
    otherUrl: server.url,
    vanish: () => proxy.stall(),
    giveUp: () => proxy.cut(),
    close: async () => {
      await proxy.close();
      await server.stop();
    },
  };
}

const urlOf = (host: string, port: number): string =>
  `postgres://postgres:${PASSWORD}@${host}:${port}/postgres`;

const run = (command: string, ...args: string[]): number | null =>
  spawnSync(command, args, { stdio: 'ignore' }).status;

function must(...args: string[]): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${args.join(' ')} failed.\n${stderr}`);
}
