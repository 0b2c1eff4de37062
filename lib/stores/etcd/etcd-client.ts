import {
  ETCD_BAD_ANSWER,
  ETCD_CLOSED,
  ETCD_NO_TIME,
  ETCD_NOT_LET_IN,
  ETCD_SAYS,
} from '../../lease.messages.js';
import { objectOf, UnreadableError } from './etcd-answers.js';
import { Code, EtcdError, NoEtcdAnswerError } from './etcd-error.js';
import { EtcdHttp, type HttpAnswer, type Stream } from './etcd-http.js';
import type { EtcdSettings } from './etcd-options.js';

/** What was asked, and whether it may have been executed before: a try that was not answered. */
export interface Answer<T> {
  readonly value: T;
  readonly isDoubtful: boolean;
}

/** A stream, and the member that it comes from. */
export interface Listening {
  readonly endpoint: URL;
  hangUp(): void;
}

/** Less is no time for a try. */
const TRY_AT_LEAST = 20;

/**
 * Asks the members one after the other until one answers, each request within a time. Every request of this store can
 * be executed twice with the effect of once: that is what makes it right to ask another member when the first, which
 * may have done it, does not answer.
 */
export class EtcdClient {
  readonly #settings: EtcdSettings;
  #members: readonly EtcdHttp[] = [];
  /** Which of them answered last. */
  #at = 0;
  #token: Promise<string> | undefined;
  /** Told of a member that does not answer. */
  onTrouble: (endpoint: URL) => void = () => {};

  constructor(settings: EtcdSettings) {
    this.#settings = settings;
    this.open();
  }

  get isOpen(): boolean {
    return this.#members.length > 0;
  }

  open(): void {
    if (this.isOpen) return;
    const { endpoints, tls } = this.#settings;
    this.#members = endpoints.map((endpoint) => new EtcdHttp(endpoint, tls));
  }

  close(): void {
    for (const member of this.#members) member.close();
    this.#members = [];
    this.#at = 0;
    this.#token = undefined;
  }

  /** @param until - on the monotonic clock */
  async ask<T>(
    path: string,
    body: object,
    read: (answer: unknown) => T,
    until: number,
  ): Promise<Answer<T>> {
    return this.#ask(path, [body], (text) => read(parse(text)), until);
  }

  /** Many requests in one, and their answers in the same order. */
  async askAll<T>(
    path: string,
    bodies: readonly object[],
    read: (answer: unknown, i: number) => T,
    until: number,
  ): Promise<readonly T[]> {
    const readLines = (text: string): T[] => {
      const lines = text.split('\n').filter(Boolean);
      if (lines.length !== bodies.length) throw new UnreadableError();
      return lines.map((line, i) => read(resultOf(line), i));
    };
    return (await this.#ask(path, bodies, readLines, until)).value;
  }

  /** Listens to the member that answered last. */
  async stream(
    path: string,
    bodies: readonly object[],
    stream: Stream,
    until: number,
  ): Promise<Listening> {
    const token = await this.#authenticated(until);
    const member = this.#member();
    return {
      endpoint: member.endpoint,
      hangUp: member.stream(path, textOf(bodies), token, stream),
    };
  }

  /** It was not answered there: the next request goes to another, if there is one. */
  blame(endpoint: URL): void {
    if (this.#members[this.#at]?.endpoint !== endpoint) return;
    this.#at = (this.#at + 1) % this.#members.length;
  }

  /** The next request asks for another. */
  forgetToken(): void {
    this.#token = undefined;
  }

  async #ask<T>(
    path: string,
    bodies: readonly object[],
    read: (text: string) => T,
    until: number,
  ): Promise<Answer<T>> {
    let isDoubtful = false;
    let isFresh = false;
    for (;;) {
      const authenticated = this.#authenticated(until);
      const token = this.#token;
      try {
        const text = textOf(bodies);
        const answer = await this.#post(path, text, await authenticated, read, until);
        return { value: answer.value, isDoubtful: isDoubtful || answer.isDoubtful };
      } catch (error) {
        // It forgets tokens: after a restart, with time, when a role changes. Nothing was executed.
        if (isFresh || !isTokenTrouble(error) || this.#settings.user === undefined) throw error;
        isFresh = true;
        isDoubtful ||= (error as EtcdError).cause === DOUBTFUL;
        if (this.#token === token) this.forgetToken();
      }
    }
  }

  async #post<T>(
    path: string,
    body: string,
    token: string,
    read: (text: string) => T,
    until: number,
  ): Promise<Answer<T>> {
    let isDoubtful = false;
    let last: unknown;
    // Once more than there are members: a connection that the server has closed meanwhile shows by a failure.
    for (let tries = this.#members.length; tries >= 0; tries--) {
      const member = this.#member();
      const left = until - performance.now();
      if (left <= (last === undefined ? 0 : TRY_AT_LEAST)) break;
      try {
        const ms = Math.max(left / Math.max(tries, 1), Math.min(left, TRY_AT_LEAST));
        const answer = await member.post(path, body, token, ms);
        return { value: readAnswer(answer, read, member.endpoint), isDoubtful };
      } catch (error) {
        if (!isOfMember(error)) {
          throw error instanceof EtcdError && isDoubtful
            ? new EtcdError(error.message, error.code, { cause: DOUBTFUL })
            : error;
        }
        isDoubtful ||= !(error instanceof NoEtcdAnswerError) || error.isSent;
        last = error;
        this.blame(member.endpoint);
        this.onTrouble(member.endpoint);
      }
    }
    throw last ?? new NoEtcdAnswerError(ETCD_NO_TIME(), false);
  }

  #member(): EtcdHttp {
    const member = this.#members[this.#at];
    if (member === undefined) throw new Error(ETCD_CLOSED());
    return member;
  }

  async #authenticated(until: number): Promise<string> {
    const { user } = this.#settings;
    if (user === undefined) return '';
    for (;;) {
      const isOwn = this.#token === undefined;
      const token = (this.#token ??= this.#authenticate(user, until));
      try {
        return await token;
      } catch (error) {
        if (this.#token === token) this.forgetToken();
        // Who asked for it may have had less time.
        const isInTime = error instanceof NoEtcdAnswerError && performance.now() < until;
        if (isOwn || !isInTime) throw error;
      }
    }
  }

  async #authenticate(
    { name, password }: { name: string; password: string },
    until: number,
  ): Promise<string> {
    const read = (text: string): string => {
      const { token } = objectOf(parse(text));
      if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) throw new UnreadableError();
      return token;
    };
    try {
      const body = JSON.stringify({ name, password });
      return (await this.#post('v3/auth/authenticate', body, '', read, until)).value;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      // Where nobody has to show a token, none is needed.
      if (error.code === Code.failedPrecondition) return '';
      // Its own words only, and those are known: a server that repeats the password is not repeated (rule 15).
      throw new EtcdError(ETCD_NOT_LET_IN(name), error.code);
    }
  }
}

const DOUBTFUL = 'An earlier try was not answered.';

const textOf = (bodies: readonly object[]): string =>
  bodies.map((body) => JSON.stringify(body)).join('\n');

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableError();
  }
}

/** Of one line of an answer that has several. */
export function resultOf(line: string): unknown {
  const { result, error } = objectOf(parse(line));
  if (error !== undefined) throw errorOf(error);
  return result;
}

function readAnswer<T>({ status, text }: HttpAnswer, read: (text: string) => T, from: URL): T {
  try {
    if (status !== 200) throw errorOf(parse(text));
    return read(text);
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    throw new NoEtcdAnswerError(ETCD_BAD_ANSWER(from.host, status), true);
  }
}

function errorOf(value: unknown): Error {
  const { error, message = error, code, grpc_code: ofStream = code } = objectOf(value);
  if (typeof message !== 'string' || typeof ofStream !== 'number') throw new UnreadableError();
  return new EtcdError(ETCD_SAYS(message), ofStream);
}

/** Another member may do better. */
function isOfMember(error: unknown): boolean {
  if (error instanceof NoEtcdAnswerError) return true;
  const { unavailable, deadlineExceeded } = Code;
  return error instanceof EtcdError && [unavailable, deadlineExceeded].includes(error.code as 14);
}

function isTokenTrouble(error: unknown): boolean {
  if (!(error instanceof EtcdError)) return false;
  const { code, message } = error;
  if (code === Code.unauthenticated) return true;
  return code === Code.invalidArgument && /auth store is old|user name is empty/.test(message);
}
