import { once } from 'node:events';
import { createServer, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface EtcdRequest {
  /** Such as `v3/kv/txn`. */
  readonly path: string;
  readonly body: string;
  /** A transaction that writes in case it succeeds. */
  readonly isWrite: boolean;
}

/**
 * What becomes of a request: nothing for the usual, or
 * - `hold`: it is kept until {@link EtcdProxy.deliver}, and nobody is answered,
 * - `swallow`: etcd executes it, its answer is lost,
 * - `reset`: the connection breaks, etcd gets nothing,
 * - an answer that etcd did not give, or one made from the one it gave.
 */
export type Verdict =
  | 'hold'
  | 'swallow'
  | 'reset'
  | { readonly status?: number; readonly text: string }
  | { readonly edit: (text: string) => string };

export type Script = (request: EtcdRequest) => Verdict | undefined | Promise<Verdict | undefined>;

/** Between a store and a member, and knows what they say: JSON over HTTP. Without a member it makes up all answers. */
export async function startEtcdProxy(targetPort?: number): Promise<EtcdProxy> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return new EtcdProxy(server, targetPort);
}

export class EtcdProxy {
  readonly port: number;
  readonly requests: EtcdRequest[] = [];
  script: Script = () => undefined;
  readonly #held: EtcdRequest[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(
    private readonly server: Server,
    /** May be set to another's. */
    public targetPort: number | undefined,
  ) {
    this.port = (server.address() as AddressInfo).port;
    server.unref();
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.on('request', (incoming, response) => {
      const path = incoming.url!.slice(1);
      let body = '';
      incoming.setEncoding('utf8');
      incoming.on('error', () => undefined);
      incoming.on('data', (chunk: string) => (body += chunk));
      incoming.on('end', () => {
        const isWrite = path === 'v3/kv/txn' && /"success":\[\{"request_(put|delete)/.test(body);
        void this.#handle({ path, body, isWrite }, incoming.headers.authorization, response);
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get held(): number {
    return this.#held.length;
  }

  /** How many connections there are. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** What was held gets to etcd now, however late; gives its answers. */
  deliver(): Promise<string[]> {
    return Promise.all(this.#held.splice(0).map(async (held) => (await this.#forward(held)).text));
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.dropConnections();
    if (!this.server.listening) return;
    this.server.close();
    await once(this.server, 'close');
  }

  async #handle(asked: EtcdRequest, token: string | undefined, response: ServerResponse) {
    this.requests.push(asked);
    const verdict = await this.script(asked);
    if (verdict === 'hold') return void this.#held.push(asked);
    if (verdict === 'reset') return response.socket?.resetAndDestroy();
    if (typeof verdict === 'object' && 'text' in verdict) {
      return response.writeHead(verdict.status ?? 200).end(verdict.text);
    }
    if (asked.path === 'v3/watch') return this.#pipe(asked, token, response);
    try {
      const { status, text } = await this.#forward(asked, token);
      if (verdict === 'swallow') return response.socket?.resetAndDestroy();
      return response.writeHead(status).end(verdict === undefined ? text : verdict.edit(text));
    } catch {
      return response.socket?.resetAndDestroy();
    }
  }

  async #forward(
    { path, body }: EtcdRequest,
    token?: string,
  ): Promise<{ status: number; text: string }> {
    const answer = await fetch(`http://127.0.0.1:${this.targetPort}/${path}`, {
      method: 'POST',
      body,
      ...(token === undefined ? {} : { headers: { authorization: token } }),
    });
    return { status: answer.status, text: await answer.text() };
  }

  #pipe({ path, body }: EtcdRequest, token: string | undefined, response: ServerResponse): void {
    const headers = token === undefined ? {} : { authorization: token };
    const outgoing = request({ port: this.targetPort, path: `/${path}`, method: 'POST', headers });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode!).flushHeaders();
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    outgoing.end(body);
  }
}
