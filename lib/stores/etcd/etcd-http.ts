import * as http from 'node:http';
import * as https from 'node:https';
import {
  ETCD_CLOSED,
  ETCD_NO_ANSWER,
  ETCD_TOO_LONG,
  ETCD_UNREACHABLE,
} from '../../lease.messages.js';
import { NoEtcdAnswerError } from './etcd-error.js';
import type { EtcdSettings } from './etcd-options.js';

/** A page of a listing is far below; whoever sends more is no etcd. */
const LONGEST_ANSWER = 16 * 1_024 * 1_024;
const SOCKETS = 32;

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** An answer that goes on. */
export interface Stream {
  onLine: (line: string) => void;
  /** Once, whoever ended it. */
  onEnd: (error: unknown) => void;
}

/**
 * HTTP to one member. By node:http and not by `fetch`, which takes neither a CA nor a client certificate without
 * another package, and does not tell whether a request had left.
 */
export class EtcdHttp {
  readonly #agent: http.Agent;
  /** How to end each that is under way. */
  readonly #underWay = new Set<(why: Error) => void>();

  constructor(
    readonly endpoint: URL,
    private readonly tls: EtcdSettings['tls'],
  ) {
    const settings = { keepAlive: true, maxSockets: SOCKETS, ...tls };
    this.#agent = this.#isSecure ? new https.Agent(settings) : new http.Agent(settings);
  }

  /** One request, one whole answer within `ms`. Rejects with a {@link NoEtcdAnswerError}. */
  post(path: string, body: string, token: string, ms: number): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const sent = new Sent(this.#request(path, body, token, this.#agent), this.#isSecure);
      const over = (): void => {
        clearTimeout(limit);
        this.#underWay.delete(end);
      };
      const end = (why: Error): void => {
        over();
        reject(why);
        sent.request.destroy();
      };
      const fail = (message: string, cause?: unknown): void =>
        end(new NoEtcdAnswerError(message, sent.isSent, { cause }));
      this.#underWay.add(end);
      const { host } = this.endpoint;
      const limit = setTimeout(() => fail(ETCD_NO_ANSWER(host, ms)), ms).unref();
      sent.request.on('error', (error) => fail(ETCD_UNREACHABLE(host, error), error));
      sent.request.on('response', (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('error', (error) => fail(ETCD_UNREACHABLE(host, error), error));
        response.on('data', (chunk: Buffer) => {
          length += chunk.length;
          if (length > LONGEST_ANSWER) fail(ETCD_TOO_LONG(host));
          else chunks.push(chunk);
        });
        response.on('end', () => {
          over();
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, text });
        });
      });
    });
  }

  /** A request on a connection of its own, whose answer comes line by line. Returns how to hang up. */
  stream(path: string, body: string, token: string, stream: Stream): () => void {
    const request = this.#request(path, body, token, false);
    let isOver = false;
    const end = (error: unknown): void => {
      if (isOver) return;
      isOver = true;
      request.destroy();
      stream.onEnd(error);
    };
    const { host } = this.endpoint;
    request.setSocketKeepAlive(true, 5_000);
    request.on('error', (error) => end(error));
    request.on('response', (response) => {
      let rest = '';
      response.setEncoding('utf8');
      response.on('error', end);
      response.on('end', () => end(undefined));
      response.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop()!;
        if (rest.length > LONGEST_ANSWER) return end(new Error(ETCD_TOO_LONG(host)));
        for (const line of lines) if (!isOver && line !== '') stream.onLine(line);
      });
    });
    return () => end(undefined);
  }

  /** Those that wait for a connection too: it would make one for each. */
  close(): void {
    for (const end of this.#underWay) end(new Error(ETCD_CLOSED()));
    this.#agent.destroy();
  }

  get #isSecure(): boolean {
    return this.endpoint.protocol === 'https:';
  }

  #request(
    path: string,
    body: string,
    token: string,
    agent: http.Agent | false,
  ): http.ClientRequest {
    const headers: http.OutgoingHttpHeaders = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    if (token !== '') headers['authorization'] = token;
    const url = new URL(path, this.endpoint);
    const options = { method: 'POST', headers, agent };
    const request = this.#isSecure
      ? https.request(url, { ...options, ...this.tls })
      : http.request(url, options);
    // After it was destroyed an error may still come, and nobody else listens (rule 12).
    request.on('error', () => {});
    request.end(body);
    return request;
  }
}

/** Whether a request can have reached anybody. */
class Sent {
  isSent = false;

  constructor(
    readonly request: http.ClientRequest,
    isSecure: boolean,
  ) {
    request.on('socket', (socket) => {
      // One that was used before is connected.
      if (!socket.connecting) this.isSent = true;
      else socket.once(isSecure ? 'secureConnect' : 'connect', () => (this.isSent = true));
    });
  }
}
