import type { Redis, RedisOptions } from 'ioredis';
import { parseDuration, type Duration } from '../../lease/duration.js';
import { BAD_REPLY, CLAIM_TOO_LATE, NOT_CONNECTED } from '../../lease.messages.js';
import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseRecord,
  LeaseStore,
  OnTurn,
  Refusal,
  ReleaseHow,
  RenewOutcome,
  StoreInThread,
} from '../lease-store.js';
import { Outbox } from './outbox.js';
import {
  connectionFor,
  hangUp,
  hideSecrets,
  subscriberFor,
  untilReady,
  type IoredisClient,
} from './redis-connection.js';
import { connectionForThread } from './redis-in-thread.js';
import { qualifiedKey, redisKeys, scanPattern } from './redis-keys.js';
import { RedisLine, type Place } from './redis-line.js';
import { toRecord } from './redis-record.js';
import { scriptsFor } from './retention.js';
import type { scripts } from './scripts.js';
import { ServerTime } from './server-time.js';
import { Silence } from './silence.js';
import { wireToken } from './wire-token.js';

/**
 * @publicApi
 */
export interface RedisLeaseStoreOptions {
  /**
   * How long the fence of a key is remembered after its last grant: the longest step back of the server's clock
   * that fences survive. What is left of a key in Redis goes after this time, or up to 17 minutes later; never less
   * than ten of its ttls.
   * @default '24h'
   */
  fenceRetention?: Duration;
}

interface Script {
  readonly sha1: string;
  readonly source: string;
}

const HELD = 0;
const GRANTED = 1;
const DONE = 2;
const LATE = 3;
const IN_LINE = 4;
const RENEWED: Readonly<Record<number, RenewOutcome>> = { 0: 'gone', 1: 'renewed' };
const CONNECT_PATIENCE = 2_000;

/**
 * Leases in a Redis that you already have. One server's word: read "What happens when Redis is down" in the README
 * before you trust it with more than efficiency.
 *
 * @example
 * ```ts
 * LeaseModule.forRoot({ store: new RedisLeaseStore(process.env.REDIS_URL) });
 * LeaseModule.forRoot({ store: new RedisLeaseStore({ host: 'redis', tls: {} }) });
 * LeaseModule.forRoot({ store: new RedisLeaseStore(yourIoredisClient) }); // connects beside it, never closes it
 * ```
 * @publicApi
 */
export class RedisLeaseStore implements LeaseStore {
  readonly name = 'Redis';
  readonly limits = { minTtl: 50, maxTtl: 86_400_000, permits: true, push: true, shared: true };

  readonly #connect: () => Redis;
  readonly #inThread: () => StoreInThread;
  readonly #time = new ServerTime();
  readonly #silence = new Silence();
  readonly #line: RedisLine;
  readonly #outbox = new Outbox<ReleasedHere, AskedHere>((releases, claims) => {
    if (claims.length === 0) this.#sendReleases(releases);
    else if (releases.length === 0) this.#sendClaims(claims);
    else this.#exchange(releases, claims);
  });
  readonly #retention: number;
  readonly #scripts: typeof scripts;
  #client: Redis;
  #closed = false;

  constructor(
    connection: string | RedisOptions | IoredisClient | undefined,
    options: RedisLeaseStoreOptions = {},
  ) {
    const retention = options.fenceRetention ?? '24h';
    this.#retention = ms(parseDuration(retention, 'fenceRetention', { min: 1_000 }));
    this.#scripts = scriptsFor(this.#retention);
    this.#inThread = () => ({
      module: import.meta.url,
      export: 'RedisLeaseStore',
      args: [connectionForThread(connection!), options],
    });
    this.#connect = () =>
      this.#silence.watch(connectionFor(connection)).on('close', () => this.#time.forget());
    this.#client = this.#connect();
    this.#line = new RedisLine(
      () => subscriberFor(connection),
      (lease, token) => void this.#giveBackStray(lease, token),
    );
  }

  async open(): Promise<void> {
    if (this.#closed) {
      this.#closed = false;
      this.#client = this.#connect();
    }
    await untilReady(this.#client, CONNECT_PATIENCE);
    await this.#learnTime();
  }

  /** Another connection to the same place; of a client that was passed in, as it was configured. */
  thread(): StoreInThread {
    return this.#inThread();
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    return this.#ask(claim, undefined);
  }

  async enqueue(claim: Claim, onTurn: OnTurn): Promise<Grant | Refusal> {
    // Else it would open a connection that nobody closes.
    if (this.#closed) throw new Error(NOT_CONNECTED());
    return this.#ask(claim, this.#line.enter(claim, onTurn));
  }

  handOver(hold: Hold, next: Claim, onTurn: OnTurn): Promise<HandOver> {
    const until = performance.now() + next.patience;
    if (!this.#isReady || !this.#time.isFreshAt(until - next.patience)) {
      return this.#handOverSlowly(hold, next, onTurn);
    }
    const names = redisKeys(hold.key);
    this.#line.leave(hold.token);
    const place = this.#line.enter(next, onTurn);
    const deadline = micros(this.#time.deadlineAt(until));
    const args = [deadline, ...this.#claimArgs(next, place), wireToken(hold.token)];
    return new Promise((resolve, reject) =>
      this.#send(
        this.#scripts.handOver,
        [names.lease, names.line],
        args,
        (reply) => {
          try {
            resolve(this.#handedOver(reply, place));
          } catch (error) {
            reject(error);
          }
        },
        reject,
      ),
    );
  }

  /** There is something to be done first for the claim; the release need not wait for it. */
  async #handOverSlowly(hold: Hold, next: Claim, onTurn: OnTurn): Promise<HandOver> {
    const freeing = this.release(hold, {});
    const claiming = this.enqueue(next, onTurn);
    // Not before both are over: a grant that comes after a failed release is somebody's to give back.
    await Promise.allSettled([freeing, claiming]);
    return { freed: await freeing, answer: await claiming };
  }

  #handedOver(reply: unknown, place: Place): HandOver {
    if (isFence(reply)) {
      this.#line.take(place.hold.token);
      return { freed: true, answer: { granted: true, fence: Number(reply) } };
    }
    const [now, freed, verdict, figure, ...more] = figures(reply) ?? [];
    if (figure === undefined || more.length > 0 || (freed !== 0 && freed !== 1)) {
      throw new Error(BAD_REPLY('hand-over'));
    }
    this.#time.heard(now!);
    const answer = this.#answer(verdict!, figure, place);
    return { freed: freed === 1, answer: answer ?? tooLate() };
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    await this.#ready(CONNECT_PATIENCE);
    const alone = holds.filter(({ permits }) => permits === 1);
    const shared = holds.filter(({ permits }) => permits !== 1);
    const [outcomes, ...others] = await Promise.all([
      alone.length > 0 ? this.#renewAlone(alone) : [],
      ...shared.map((hold) => this.#renewPermit(hold)),
    ]);
    return holds.map(({ permits, token }) => {
      const outcome = (permits === 1 ? outcomes : others).shift()!;
      if (outcome === 'gone') this.#line.leave(token);
      return outcome;
    });
  }

  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    const isPlain = hold.permits === 1 && !(how.keepFor! > 0) && how.done === undefined;
    // First of all: if it cannot be sent, whatever is granted to it later is given back.
    const place = this.#line.leave(hold.token);
    if (!isPlain || !this.#isReady || place !== undefined) {
      return this.#releaseWith(hold, how, place);
    }
    const isRelaxed = how.relaxed === true;
    return new Promise((resolve, reject) =>
      this.#outbox.release({ hold, resolve, reject }, isRelaxed),
    );
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    await this.#ready(CONNECT_PATIENCE);
    const { lease, permits, holders } = redisKeys(key);
    return toRecord(key, await this.#run(this.#scripts.inspect, [lease, permits, holders], []));
  }

  async *list({ prefix = '' }: { readonly prefix?: string } = {}): AsyncIterable<LeaseRecord> {
    await this.#ready(CONNECT_PATIENCE);
    const { keyPrefix = '' } = this.#client.options;
    const pattern = scanPattern(keyPrefix, prefix);
    const seen = new Set<string>();
    let cursor = '0';
    do {
      const [next, names] = await this.#client.scan(cursor, 'MATCH', pattern, 'COUNT', 500);
      cursor = next;
      for (const name of names) {
        const key = qualifiedKey(name.slice(keyPrefix.length));
        // SCAN may name a key twice.
        if (key === undefined || !key.startsWith(prefix) || seen.has(key)) continue;
        seen.add(key);
        const record = await this.inspect(key);
        if (record !== null) yield record;
      }
    } while (cursor !== '0');
  }

  /** Closes our own connection; a client that was passed in is the user's. {@link open} opens it again. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#outbox.close();
    await Promise.all([this.#line.close(), hangUp(this.#client)]);
  }

  #ask(claim: Claim, place: Place | undefined): Promise<Grant | Refusal> {
    const now = performance.now();
    const until = now + claim.patience;
    const isPlain =
      place === undefined &&
      claim.permits === 1 &&
      claim.once === undefined &&
      10 * claim.ttl <= this.#retention;
    if (!isPlain || !this.#isReady || !this.#time.isFreshAt(now)) {
      return this.#askSlowly({ claim, place, until });
    }
    return new Promise((resolve, reject) =>
      this.#outbox.claim({ claim, place, until, resolve, reject }),
    );
  }

  /** When there is something to be done first, or more to be asked, than for nearly all claims. */
  async #askSlowly({ claim, place, until }: Asked): Promise<Grant | Refusal> {
    await this.#ready(until - performance.now());
    for (;;) {
      if (!this.#time.isFreshAt(performance.now())) await this.#learnTime();
      const deadline = this.#time.deadlineAt(until);
      const reply = await this.#claim(claim, place, deadline);
      const [now, verdict, figure, ...more] = figures(reply) ?? [];
      if (figure === undefined || more.length > 0) throw new Error(BAD_REPLY('acquire'));
      this.#time.heard(now!);
      const answer = this.#answer(verdict!, figure, place);
      if (answer !== undefined) return answer;
      // Too late, or the server's clock was set forward: known by now, so ask again while somebody waits.
      if (performance.now() >= until) return tooLate();
    }
  }

  #claim(claim: Claim, place: Place | undefined, deadline: number): Promise<unknown> {
    const names = redisKeys(claim.key);
    const { permits, once } = claim;
    const mark = once === undefined ? [] : [names.mark(once)];
    const args = [micros(deadline), ...this.#claimArgs(claim, place)];
    if (permits === 1) {
      return this.#run(this.#scripts.enqueue, [names.lease, names.line, ...mark], args);
    }
    const keys = [names.lease, names.line, names.permits, names.holders, ...mark];
    return this.#run(this.#scripts.acquirePermit, keys, [...args, permits]);
  }

  /** Owner token, ttl, instance, and how it waits: see lua/parts/line.lua. */
  #claimArgs(claim: Claim, place: Place | undefined): [string, string, string, string] {
    const { ttl, instance, permits, once, waited = 0 } = claim;
    const token = wireToken(claim.token);
    if (place === undefined || !this.#line.isOpen) return [token, wireTtl(ttl), instance, ''];
    // Who shares the key, or has to look first whether the work is done, is only told to ask.
    const mode = permits === 1 && once === undefined ? 'g' : 'h';
    place.inLine = `${token} ${wireTtl(ttl)} ${mode} ${this.#line.channel} ${instance}`;
    const since = this.#time.at(performance.now() - waited);
    const waits = `${ms(waited * 1_000)} ${Math.floor(since * 1_000)} ${mode} ${this.#line.channel}`;
    return [token, wireTtl(ttl), instance, waits];
  }

  /** Many claims, one command. */
  #sendClaims(asked: readonly AskedHere[]): void {
    const keys: string[] = [];
    const args: string[] = [''];
    args[0] = this.#writeClaims(asked, keys, args);
    this.#send(
      this.#scripts.acquire,
      keys,
      args,
      (reply) => {
        // One that is granted needs no more than its fence.
        const isGrant = asked.length === 1 && isFence(reply);
        const answers = isGrant ? [NaN, GRANTED, Number(reply)] : figures(reply);
        if (answers?.length !== 2 * asked.length + 1) return rejectAll(asked, 'acquire');
        this.#answerClaims(asked, answers, 1);
      },
      (error) => this.#claimsFailed(asked, error),
    );
  }

  /** Many releases, one command. */
  #sendReleases(releases: readonly ReleasedHere[]): void {
    const keys: string[] = [];
    const args: string[] = [];
    this.#writeReleases(releases, keys, args);
    this.#send(
      this.#scripts.release,
      keys,
      args,
      (reply) => {
        const outcomes = releases.length === 1 ? [reply] : reply;
        if (!Array.isArray(outcomes) || outcomes.length !== releases.length) {
          return rejectAll(releases, 'release');
        }
        this.#answerReleases(releases, outcomes, 0);
      },
      (error) => this.#releasesFailed(releases, error),
    );
  }

  /** Releases and then claims, one command. */
  #exchange(releases: readonly ReleasedHere[], asked: readonly AskedHere[]): void {
    const keys: string[] = [];
    const args: string[] = ['', String(releases.length)];
    this.#writeReleases(releases, keys, args);
    args[0] = this.#writeClaims(asked, keys, args);
    this.#send(
      this.#scripts.exchange,
      keys,
      args,
      (reply) => {
        const isAsHoped = releases.length === 1 && asked.length === 1 && isFence(reply);
        const answers = isAsHoped ? [NaN, 1, GRANTED, Number(reply)] : figures(reply);
        if (answers?.length !== 1 + releases.length + 2 * asked.length) {
          rejectAll(releases, 'release');
          return rejectAll(asked, 'acquire');
        }
        this.#answerReleases(releases, answers, 1);
        this.#answerClaims(asked, answers, 1 + releases.length);
      },
      (error) => {
        this.#releasesFailed(releases, error, asked.length);
        this.#claimsFailed(asked, error, releases.length);
      },
    );
  }

  /** Returns the deadline that they have in common, the first of all. */
  #writeClaims(asked: readonly AskedHere[], keys: string[], args: string[]): string {
    let soonest = Infinity;
    for (const { claim, until } of asked) {
      const { token, ttl, instance } = claim;
      keys.push(redisKeys(claim.key).lease);
      args.push(wireTtl(ttl), `${wireToken(token)} ${instance}`);
      if (until < soonest) soonest = until;
    }
    return micros(this.#time.deadlineAt(soonest));
  }

  #writeReleases(releases: readonly ReleasedHere[], keys: string[], args: string[]): void {
    for (const { hold } of releases) {
      const names = redisKeys(hold.key);
      keys.push(names.lease, names.line);
      args.push(`${wireToken(hold.token)} `);
    }
  }

  #answerClaims(asked: readonly AskedHere[], answers: readonly number[], from: number): void {
    this.#time.heard(answers[0]!);
    for (let i = 0; i < asked.length; i++) {
      const one = asked[i]!;
      const verdict = answers[from + 2 * i]!;
      try {
        const answer =
          verdict === IN_LINE
            ? undefined
            : this.#answer(verdict, answers[from + 2 * i + 1]!, undefined);
        if (answer !== undefined) one.resolve(answer);
        // Others are in line for it; or too late by the deadline that they had in common, the first of all.
        else if (performance.now() < one.until) {
          this.#askSlowly(one).then(one.resolve, one.reject);
        } else one.resolve(tooLate());
      } catch (error) {
        one.reject(error);
      }
    }
  }

  #answerReleases(
    releases: readonly ReleasedHere[],
    outcomes: readonly unknown[],
    from: number,
  ): void {
    for (let i = 0; i < releases.length; i++) {
      const { resolve, reject } = releases[i]!;
      const freed = outcomes[from + i];
      if (freed === 0 || freed === 1) resolve(freed === 1);
      else reject(new Error(BAD_REPLY('release')));
    }
  }

  #claimsFailed(asked: readonly AskedHere[], error: unknown, others = 0): void {
    const alone = (one: Asked): Promise<Grant | Refusal> => this.#askSlowly(one);
    this.#failed<Grant | Refusal, Asked>(asked, error, others, alone);
  }

  #releasesFailed(releases: readonly ReleasedHere[], error: unknown, others = 0): void {
    this.#failed<boolean, { hold: Hold }>(releases, error, others, async ({ hold }) => {
      if (await this.#releaseWith(hold, {}, undefined)) return true;
      // Or it was freed before the rest of them failed.
      throw error;
    });
  }

  /** Nothing when the claim came too late. */
  #answer(verdict: number, figure: number, place: Place | undefined): Grant | Refusal | undefined {
    switch (verdict) {
      case GRANTED:
        if (!(figure > 0 && Number.isSafeInteger(figure))) throw new Error(BAD_REPLY('acquire'));
        if (place !== undefined) this.#line.take(place.hold.token);
        return { granted: true, fence: figure };
      case HELD:
        return {
          granted: false,
          reason: 'held',
          retryAfterMs: Math.max(0, figure),
          inLine:
            place !== undefined &&
            this.#line.isOpen &&
            this.#line.get(place.hold.token)?.inLine !== undefined,
        };
      case DONE:
        return { granted: false, reason: 'done' };
      case LATE:
        return undefined;
      default:
        throw new Error(BAD_REPLY('acquire'));
    }
  }

  /**
   * An answer for many that is an error may be the fault of one: then each is asked for by itself, with the same
   * token. Without an answer nobody knows.
   *
   * @param others - how many more were in the same request
   */
  #failed<Answer, More>(
    requests: readonly (Promised<Answer> & More)[],
    error: unknown,
    others: number,
    alone: (request: More) => Promise<Answer>,
  ): void {
    const isAnswer = error instanceof Error && error.name === 'ReplyError';
    for (const request of requests) {
      if (isAnswer && requests.length + others > 1) {
        alone(request).then(request.resolve, request.reject);
      } else request.reject(error);
    }
  }

  async #releaseWith(
    hold: Hold,
    { keepFor = 0, done }: ReleaseHow,
    place: Place | undefined,
  ): Promise<boolean> {
    await this.#ready(CONNECT_PATIENCE);
    const { key, ttl, permits } = hold;
    const names = redisKeys(key);
    const token = wireToken(hold.token);
    if (place?.inLine !== undefined) {
      const keys = [names.lease, names.line];
      const left = await this.#run(this.#scripts.leave, keys, [token, place.inLine]);
      if (left !== 0 && left !== 1) throw new Error(BAD_REPLY('release'));
      // A permit is no part of the record that leaving looks at.
      if (permits === 1) return left === 1;
    }
    const mark = done ? [names.mark(done.once)] : [];
    const keys = [names.lease, names.line, names.permits, names.holders, ...mark];
    const args = [token, ms(ttl), permits, ms(keepFor), ms(done?.remember ?? 0)];
    const freed = await this.#run(this.#scripts.releaseWith, keys, args);
    if (freed !== 0 && freed !== 1) throw new Error(BAD_REPLY('release'));
    return freed === 1;
  }

  async #renewAlone(holds: readonly Hold[]): Promise<RenewOutcome[]> {
    const keys: string[] = [];
    const args: (string | number)[] = [];
    for (const { key, token, ttl } of holds) {
      keys.push(redisKeys(key).lease);
      args.push(wireTtl(ttl), wireToken(token));
    }
    return this.#renewed(await this.#run(this.#scripts.renew, keys, args), holds.length);
  }

  async #renewPermit({ key, token, ttl }: Hold): Promise<RenewOutcome> {
    const { lease, permits, holders } = redisKeys(key);
    const args = [wireToken(token), ms(ttl)];
    const reply = await this.#run(this.#scripts.renewPermit, [lease, permits, holders], args);
    return this.#renewed(reply, 1)[0]!;
  }

  #renewed(reply: unknown, count: number): RenewOutcome[] {
    const [now, ...outcomes] = figures(reply) ?? [];
    if (now === undefined || outcomes.length !== count) throw new Error(BAD_REPLY('renew'));
    this.#time.heard(now);
    return outcomes.map((outcome) => RENEWED[outcome] ?? 'unknown');
  }

  /** Granted by the server to one of us who has gone: nobody else would ever give it back. */
  async #giveBackStray(name: string, token: string): Promise<void> {
    const { keyPrefix = '' } = this.#client.options;
    const lease = name.slice(keyPrefix.length);
    try {
      await this.#ready(CONNECT_PATIENCE);
      await this.#run(this.#scripts.release, [lease, `${lease}:line`], [`${wireToken(token)} `]);
    } catch {
      // Left to its ttl.
    }
  }

  async #learnTime(): Promise<void> {
    const asked = this.#silence.during(this.#client.time());
    const reply: unknown = await asked.catch((error: unknown) => {
      throw hideSecrets(error);
    });
    // Without a clock there is no deadline, and a claim without one could be executed late (rule 2).
    const isTime = Array.isArray(reply) && reply.length === 2 && reply.every(isDigits);
    if (!isTime) throw new Error(BAD_REPLY('TIME'));
    const now = Number(reply[0]) * 1_000 + Math.floor(Number(reply[1]) / 1_000);
    this.#time.heard(now);
  }

  get #isReady(): boolean {
    return !this.#closed && this.#client.status === 'ready';
  }

  #ready(patience: number): Promise<void> | undefined {
    if (this.#closed) throw new Error(NOT_CONNECTED());
    return this.#client.status === 'ready' ? undefined : untilReady(this.#client, patience);
  }

  #run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    return new Promise((resolve, reject) => this.#send(script, keys, args, resolve, reject));
  }

  /** By its SHA; a server that forgot the script (restart, SCRIPT FLUSH) is sent it whole, with the same token. */
  #send(
    { sha1, source }: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    answered: (reply: unknown) => void,
    failed: (error: unknown) => void,
  ): void {
    // A release that nobody waits for is not overtaken by what was asked for after it.
    this.#outbox.empty();
    const client = this.#client;
    const silence = this.#silence;
    const onAnswer = (reply: unknown): void => {
      silence.answered();
      answered(reply);
    };
    const onError = (error: unknown): void => {
      silence.answered();
      failed(hideSecrets(error));
    };
    silence.asked();
    if (this.#outbox.isLast) {
      // Nobody will be there to be told that the server does not know it, or to send what waits for company.
      client.options.enableAutoPipelining = false;
      client.eval(source, keys.length, ...keys, ...args).then(onAnswer, onError);
      return;
    }
    client.evalsha(sha1, keys.length, ...keys, ...args).then(onAnswer, (error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) return onError(error);
      client.eval(source, keys.length, ...keys, ...args).then(onAnswer, onError);
    });
  }
}

interface Promised<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

interface Asked {
  readonly claim: Claim;
  readonly place: Place | undefined;
  /** Monotonic time until which somebody waits for the answer. */
  readonly until: number;
}

interface AskedHere extends Asked, Promised<Grant | Refusal> {}

interface ReleasedHere extends Promised<boolean> {
  readonly hold: Hold;
}

const tooLate = (): Refusal => ({
  granted: false,
  reason: 'unavailable',
  cause: new Error(CLAIM_TOO_LATE()),
});

/** Redis counts whole milliseconds; up, so that a claim never ends before the holder thinks it does. */
const ms = (value: number): number => Math.ceil(value);

/** As the scripts have them: see lua/parts/record.lua. */
const wireTtl = (ttl: number): string => String(ms(ttl)).padStart(12, '0');

const micros = (milliseconds: number): string => `${milliseconds}000`;

/** As our scripts write one: in 16 digits, see lua/parts/clock.lua. */
const isFence = (text: unknown): boolean => typeof text === 'string' && /^\d{16}$/.test(text);

const isDigits = (text: unknown): boolean => typeof text === 'string' && /^\d{1,16}$/.test(text);

function rejectAll(requests: readonly Promised<never>[], command: string): void {
  for (const { reject } of requests) reject(new Error(BAD_REPLY(command)));
}

/**
 * Whole numbers and nothing else, or nothing at all: on an answer that our scripts cannot have given, nothing is granted
 * or lost.
 */
function figures(reply: unknown): number[] | undefined {
  if (!Array.isArray(reply) || reply.length === 0) return undefined;
  const numbers = reply.map((figure) => (isFence(figure) ? Number(figure) : (figure as number)));
  return numbers.every(Number.isSafeInteger) ? numbers : undefined;
}
