import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** A command as it came: its name in capitals, then its arguments. */
export type RedisCommand = readonly [name: string, ...args: string[]];

/** What to say to a command, as bytes of the protocol. `undefined`: what a sane server says, where it is known. */
export type Script = (command: RedisCommand) => string | undefined;

/** A server that speaks Redis' protocol and says what it is told to say. */
export async function startFakeRedis(script: Script): Promise<FakeRedis> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  const commands: RedisCommand[] = [];
  server.on('connection', (socket) => {
    sockets.add(socket.setNoDelay(true));
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk;
      for (let read = parse(received); read !== undefined; read = parse(received)) {
        received = received.slice(read.length);
        commands.push(read.command);
        socket.write(script(read.command) ?? sane(read.command), 'latin1');
      }
    });
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `redis://127.0.0.1:${port}`,
    commands,
    dropConnections: () => sockets.forEach((socket) => socket.destroy()),
    close: async () => {
      sockets.forEach((socket) => socket.destroy());
      server.close();
      await once(server, 'close');
    },
  };
}

export interface FakeRedis {
  readonly url: string;
  /** All that came. */
  readonly commands: readonly RedisCommand[];
  dropConnections(): void;
  close(): Promise<void>;
}

export const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

export const timeReply = (ms: number): string =>
  `*2\r\n${bulk(`${Math.floor(ms / 1_000)}`)}${bulk(`${(ms % 1_000) * 1_000}`)}`;

function sane([name]: RedisCommand): string {
  if (name === 'HELLO') return "-ERR unknown command 'HELLO'\r\n";
  if (name === 'INFO') return bulk('redis_version:7.0.0\r\nloading:0\r\n');
  if (name === 'TIME') return timeReply(Date.now());
  return '+OK\r\n';
}

/** The first command of what was received, if it is there as a whole. */
function parse(received: string): { command: RedisCommand; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(received);
  if (head === null) return undefined;
  const words: string[] = [];
  let at = head[0].length;
  for (let i = 0; i < Number(head[1]); i++) {
    const size = /^\$(\d+)\r\n/.exec(received.slice(at));
    if (size === null) return undefined;
    const from = at + size[0].length;
    at = from + Number(size[1]) + 2;
    if (received.length < at) return undefined;
    words.push(received.slice(from, at - 2));
  }
  const [name = '', ...args] = words;
  return { command: [name.toUpperCase(), ...args], length: at };
}
