import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** What to say to a statement, as messages of the protocol. `undefined`: no rows. */
export type Script = (sql: string) => Buffer | undefined;

export interface FakePostgres {
  readonly url: string;
  /** The texts of all statements that came. */
  readonly statements: readonly string[];
  readonly dropConnections: () => void;
  close(): Promise<void>;
}

/** The number of the process that it says answers. */
export const PID = 42;

/** A server that speaks PostgreSQL's protocol, lets everybody in, and says what it is told to say. */
export async function startFakePostgres(script: Script): Promise<FakePostgres> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  const statements: string[] = [];
  const answer = (sql: string): Buffer => {
    statements.push(sql);
    return script(sql) ?? rows([]);
  };
  server.on('connection', (socket) => {
    sockets.add(socket.setNoDelay(true));
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    let received = Buffer.alloc(0);
    let isStarted = false;
    let parsed = '';
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const at = isStarted ? 1 : 0;
        if (received.length < at + 4) return;
        const length = at + received.readInt32BE(at);
        if (received.length < length) return;
        const type = isStarted ? String.fromCharCode(received[0]!) : '';
        const body = received.subarray(at + 4, length);
        received = received.subarray(length);
        if (type === '') {
          isStarted = true;
          socket.write(welcome());
        } else if (type === 'Q') socket.write(answer(textAt(body, 0)));
        else if (type === 'P') parsed = textAt(body, body.indexOf(0) + 1);
        else if (type === 'S') socket.write(answer(parsed));
      }
    });
  });
  const { port } = server.address() as AddressInfo;
  const dropConnections = (): void => sockets.forEach((socket) => socket.destroy());
  return {
    url: `postgres://liar:secret@127.0.0.1:${port}/lies`,
    statements,
    dropConnections,
    close: async () => {
      dropConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const textAt = (body: Buffer, from: number): string =>
  body.toString('utf8', from, body.indexOf(0, from));

/** One message: its type and what is in it. */
export function message(type: string, ...parts: readonly (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

export const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
export const int16 = (value: number): Buffer => int32(value).subarray(2);

export const ready = (): Buffer => message('Z', 'I');

const welcome = (): Buffer =>
  Buffer.concat([message('R', int32(0)), message('K', int32(PID), int32(7)), ready()]);

/** Rows of texts, as many as there are. */
export function rows(list: readonly Readonly<Record<string, string | null>>[]): Buffer {
  const names = Object.keys(list[0] ?? { nothing: '' });
  const columns = names.map((name) =>
    Buffer.concat([
      Buffer.from(`${name}\0`),
      int32(0),
      int16(0),
      int32(25),
      int16(-1),
      int32(-1),
      int16(0),
    ]),
  );
  const data = list.map((row) => {
    const values = Object.values(row).map((value) =>
      value === null
        ? int32(-1)
        : Buffer.concat([int32(Buffer.byteLength(value)), Buffer.from(value)]),
    );
    return message('D', int16(values.length), ...values);
  });
  const head = message('T', int16(names.length), ...columns);
  return Buffer.concat([head, ...data, message('C', `SELECT ${list.length}\0`), ready()]);
}
