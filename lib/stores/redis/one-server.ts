import {
  BAD_REPLY,
  IN_QUARANTINE,
  NOT_CONNECTED,
  QUARANTINE_NEEDS_INFO,
  TOO_FEW_COPIES,
} from '../../lease.messages.js';
import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseRecord,
  OnTurn,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../lease-store.js';
import type { Redis } from 'ioredis';
import type { ListenerOptions } from './listener.js';
import { Outbox } from './outbox.js';
import { qualifiedKey, redisKeys, scanPattern } from './redis-keys.js';
import { RedisLine, type Place } from './redis-line.js';
import { CONNECT_PATIENCE, RedisLink } from './redis-link.js';
import { toRecord } from './redis-record.js';
import {
  DONE,
  figures,
  GRANTED,
  HELD,
  IN_LINE,
  isFence,
  LATE,
  micros,
  ms,
  QUARANTINE,
  rejectAll,
  tooLate,
  wireTtl,
  type Promised,
} from './redis-replies.js';
import type { RedisRules } from './redis-rules.js';
import { scriptsFor } from './retention.js';
import type { scripts } from './scripts.js';
import { wireToken } from './wire-token.js';

const RENEWED: Readonly<Record<number, RenewOutcome>> = { 0: 'gone', 1: 'renewed' };
/** Where a server is remembered: see lua/parts/quarantine.lua. */
const ALIVE = 'nestjs-lease:alive';

/** Where a server is, by two kinds of connections. */
export interface Where extends ListenerOptions {
  readonly connect: () => Redis;
}

/** The leases of one server: the only one, a primary behind Sentinel, or a node of a cluster. */
export class OneServer {
  readonly #link: RedisLink;
  /** The same, unless copies are counted: claims must not keep renewals waiting, which wait for copies too. */
  readonly #claims: RedisLink;
  readonly #line: RedisLine;
  readonly #outbox: Outbox<ReleasedHere, AskedHere>;
  readonly #retention: number;
  readonly #quarantine: number | undefined;
  /** More is to be known than that a key is free before it is granted. */
  readonly #isGuarded: boolean;
  readonly #scripts: typeof scripts;

  constructor(
    where: Where,
    private readonly rules: RedisRules,
  ) {
    this.#retention = rules.retention;
    this.#quarantine = rules.quarantine;
    this.#isGuarded = rules.quarantine !== undefined || rules.replicas !== undefined;
    this.#scripts = scriptsFor(rules.retention);
    const { isInCluster } = rules;
    const options = {
      isInCluster,
      onReadOnly: () => this.#line.reconnect(),
      // A release that nobody waits for is not overtaken by what was asked for after it.
      first: () => this.#outbox.empty(),
      isExiting: () => this.#outbox.isLast,
    };
    this.#link = new RedisLink(where.connect, options);
    this.#claims =
      rules.replicas === undefined ? this.#link : new RedisLink(where.connect, options);
    this.#line = new RedisLine(
      where,
      (lease, token) => void this.#giveBackStray(lease, token),
      undefined,
      rules.replicas === undefined,
    );
    this.#outbox = new Outbox(isInCluster ? this.#sendEach : this.#sendTogether);
  }

  get link(): RedisLink {
    return this.#link;
  }

  async open(): Promise<void> {
    await Promise.all([this.#link.open(), this.#claims === this.#link || this.#claims.open()]);
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    return this.#ask(claim, undefined);
  }

  async enqueue(claim: Claim, onTurn: OnTurn): Promise<Grant | Refusal> {
    // Else it would open a connection that nobody closes.
    if (this.#link.isClosed) throw new Error(NOT_CONNECTED());
    return this.#ask(claim, this.#line.enter(claim, onTurn));
  }

  handOver(hold: Hold, next: Claim, onTurn: OnTurn): Promise<HandOver> {
    const until = performance.now() + next.patience;
    if (
      this.#isGuarded ||
      !this.#link.isReady ||
      !this.#link.time.isFreshAt(until - next.patience)
    ) {
      return this.#handOverSlowly(hold, next, onTurn);
    }
    const names = redisKeys(hold.key);
    this.#line.leave(hold.token);
    const place = this.#line.enter(next, onTurn);
    const deadline = micros(this.#link.time.deadlineAt(until));
    const args = [deadline, ...this.#claimArgs(next, place), wireToken(hold.token)];
    return new Promise((resolve, reject) =>
      this.#link.send(
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
    this.#link.time.heard(now!);
    const answer = this.#answer(verdict!, figure, place);
    return { freed: freed === 1, answer: answer ?? tooLate() };
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    await this.#link.ready(CONNECT_PATIENCE);
    const alone = holds.filter(({ permits }) => permits === 1);
    const shared = holds.filter(({ permits }) => permits !== 1);
    const [outcomes, ...others] = await Promise.all([
      alone.length > 0 ? this.#renewAlone(alone) : [],
      ...shared.map((hold) => this.#renewPermit(hold)),
    ]);
    await this.#assertCopies(this.#link);
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
    if (!isPlain || !this.#link.isReady || place !== undefined) {
      return this.#releaseWith(hold, how, place);
    }
    const isRelaxed = how.relaxed === true;
    return new Promise((resolve, reject) =>
      this.#outbox.release({ hold, resolve, reject }, isRelaxed),
    );
  }

  /** What the token is granted here from now on is nobody's. */
  forget(token: string): void {
    this.#line.leave(token);
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    await this.#link.ready(CONNECT_PATIENCE);
    const { lease, permits, holders } = redisKeys(key);
    return toRecord(
      key,
      await this.#link.run(this.#scripts.inspect, [lease, permits, holders], []),
    );
  }

  /** Qualified keys of leases that may be held; some of them more than once. */
  async *keys(prefix: string): AsyncIterable<string> {
    await this.#link.ready(CONNECT_PATIENCE);
    const { keyPrefix } = this.#link;
    const pattern = scanPattern(keyPrefix, prefix);
    let cursor = '0';
    do {
      const [next, names] = await this.#link.client.scan(cursor, 'MATCH', pattern, 'COUNT', 500);
      cursor = next;
      for (const name of names) {
        const key = qualifiedKey(name.slice(keyPrefix.length));
        if (key?.startsWith(prefix)) yield key;
      }
    } while (cursor !== '0');
  }

  async close(): Promise<void> {
    if (this.#link.isClosed) return;
    this.#outbox.close();
    await Promise.all([this.#link.close(), this.#claims.close(), this.#line.close()]);
  }

  #ask(claim: Claim, place: Place | undefined): Promise<Grant | Refusal> {
    const now = performance.now();
    const until = now + claim.patience;
    const isPlain =
      place === undefined &&
      !this.#isGuarded &&
      claim.permits === 1 &&
      claim.once === undefined &&
      10 * claim.ttl <= this.#retention;
    if (!isPlain || !this.#link.isReady || !this.#link.time.isFreshAt(now)) {
      return this.#askSlowly({ claim, place, until });
    }
    return new Promise((resolve, reject) =>
      this.#outbox.claim({ claim, place, until, resolve, reject }),
    );
  }

  /** When there is something to be done first, or more to be asked, than for nearly all claims. */
  async #askSlowly({ claim, place, until }: Asked): Promise<Grant | Refusal> {
    const link = this.#claims;
    await link.ready(until - performance.now());
    for (;;) {
      if (!link.time.isFreshAt(performance.now())) await link.learnTime();
      const deadline = link.time.deadlineAt(until);
      const reply = await this.#claim(claim, place, deadline);
      const [now, verdict, figure, ...more] = figures(reply) ?? [];
      if (figure === undefined || more.length > 0) throw new Error(BAD_REPLY('acquire'));
      link.time.heard(now!);
      const answer = this.#answer(verdict!, figure, place);
      if (answer?.granted === true) await this.#assertCopies(link);
      if (answer !== undefined) return answer;
      // Too late, or the server's clock was set forward: known by now, so ask again while somebody waits.
      if (performance.now() >= until) return tooLate();
    }
  }

  #claim(claim: Claim, place: Place | undefined, deadline: number): Promise<unknown> {
    const names = redisKeys(claim.key);
    const { permits, once } = claim;
    const mark = once === undefined ? [] : [names.mark(once)];
    const args: (string | number)[] = [micros(deadline), ...this.#claimArgs(claim, place)];
    const keys = [names.lease, names.line];
    if (permits !== 1) {
      keys.push(names.permits, names.holders);
      args.push(permits);
    }
    const { enqueue, acquirePermit, enqueueGuarded, acquirePermitGuarded } = this.#scripts;
    const link = this.#claims;
    if (this.#quarantine === undefined) {
      return link.run(permits === 1 ? enqueue : acquirePermit, [...keys, ...mark], args);
    }
    const guarded = permits === 1 ? enqueueGuarded : acquirePermitGuarded;
    return link.run(guarded, [...keys, ...mark], [...args, ...this.#quarantineArgs(link)]);
  }

  /** See lua/parts/quarantine.lua. */
  #quarantineArgs({ server, keyPrefix }: RedisLink): (string | number)[] {
    if (server?.runId === undefined) throw new Error(QUARANTINE_NEEDS_INFO());
    return [`${keyPrefix}${ALIVE}`, server.runId, this.#quarantine!];
  }

  /** What too few replicas have is no grant and no renewal that can be counted on: no telling what becomes of it. */
  async #assertCopies(link: RedisLink): Promise<void> {
    const { replicas } = this.rules;
    if (replicas === undefined) return;
    const copies = await link.copies(replicas.count, replicas.timeout);
    if (copies < replicas.count) throw new Error(TOO_FEW_COPIES(copies, replicas.count));
  }

  /** Owner token, ttl, instance, and how it waits: see lua/parts/line.lua. */
  #claimArgs(claim: Claim, place: Place | undefined): [string, string, string, string] {
    const { ttl, instance, permits, once, waited = 0 } = claim;
    const token = wireToken(claim.token);
    const channel = place && this.#line.channelFor(claim.key);
    if (place === undefined || channel === undefined) return [token, wireTtl(ttl), instance, ''];
    // Who shares the key, or has to look first whether the work is done or the server to be trusted, is only told to ask.
    const isGiven = permits === 1 && once === undefined && this.#quarantine === undefined;
    const mode = isGiven ? 'g' : 'h';
    place.inLine = `${token} ${wireTtl(ttl)} ${mode} ${channel} ${instance}`;
    const since = this.#claims.time.at(performance.now() - waited);
    const waits = `${ms(waited * 1_000)} ${Math.floor(since * 1_000)} ${mode} ${channel}`;
    return [token, wireTtl(ttl), instance, waits];
  }

  readonly #sendTogether = (
    releases: readonly ReleasedHere[],
    claims: readonly AskedHere[],
  ): void => {
    if (claims.length === 0) this.#sendReleases(releases);
    else if (releases.length === 0) this.#sendClaims(claims);
    else this.#exchange(releases, claims);
  };

  /** Keys of several slots cannot be in one command, also not when one node has them all. */
  readonly #sendEach = (releases: readonly ReleasedHere[], claims: readonly AskedHere[]): void => {
    for (const release of releases) this.#sendReleases([release]);
    for (const claim of claims) this.#sendClaims([claim]);
  };

  /** Many claims, one command. */
  #sendClaims(asked: readonly AskedHere[]): void {
    const keys: string[] = [];
    const args: string[] = [''];
    args[0] = this.#writeClaims(asked, keys, args);
    this.#link.send(
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
    this.#link.send(
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
    this.#link.send(
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
    return micros(this.#link.time.deadlineAt(soonest));
  }

  #writeReleases(releases: readonly ReleasedHere[], keys: string[], args: string[]): void {
    for (const { hold } of releases) {
      const names = redisKeys(hold.key);
      keys.push(names.lease, names.line);
      args.push(`${wireToken(hold.token)} `);
    }
  }

  #answerClaims(asked: readonly AskedHere[], answers: readonly number[], from: number): void {
    this.#link.time.heard(answers[0]!);
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
            this.#line.channelFor(place.hold.key) !== undefined &&
            this.#line.get(place.hold.token)?.inLine !== undefined,
        };
      case DONE:
        return { granted: false, reason: 'done' };
      case LATE:
        return undefined;
      case QUARANTINE:
        return {
          granted: false,
          reason: 'unavailable',
          retryAfterMs: Math.max(0, figure),
          cause: new Error(IN_QUARANTINE(Math.max(0, figure))),
        };
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
    await this.#link.ready(CONNECT_PATIENCE);
    const { key, ttl, permits } = hold;
    const names = redisKeys(key);
    const token = wireToken(hold.token);
    if (place?.inLine !== undefined) {
      const keys = [names.lease, names.line];
      const left = await this.#link.run(this.#scripts.leave, keys, [token, place.inLine]);
      if (left !== 0 && left !== 1) throw new Error(BAD_REPLY('release'));
      // A permit is no part of the record that leaving looks at.
      if (permits === 1) return left === 1;
    }
    const mark = done ? [names.mark(done.once)] : [];
    const keys = [names.lease, names.line, names.permits, names.holders, ...mark];
    const args = [token, ms(ttl), permits, ms(keepFor), ms(done?.remember ?? 0)];
    const freed = await this.#link.run(this.#scripts.releaseWith, keys, args);
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
    return this.#renewed(await this.#link.run(this.#scripts.renew, keys, args), holds.length);
  }

  async #renewPermit({ key, token, ttl }: Hold): Promise<RenewOutcome> {
    const { lease, permits, holders } = redisKeys(key);
    const args = [wireToken(token), ms(ttl)];
    const reply = await this.#link.run(this.#scripts.renewPermit, [lease, permits, holders], args);
    return this.#renewed(reply, 1)[0]!;
  }

  #renewed(reply: unknown, count: number): RenewOutcome[] {
    const [now, ...outcomes] = figures(reply) ?? [];
    if (now === undefined || outcomes.length !== count) throw new Error(BAD_REPLY('renew'));
    this.#link.time.heard(now);
    return outcomes.map((outcome) => RENEWED[outcome] ?? 'unknown');
  }

  /** Granted by the server to one of us who has gone: nobody else would ever give it back. */
  async #giveBackStray(name: string, token: string): Promise<void> {
    const { keyPrefix } = this.#link;
    const lease = name.slice(keyPrefix.length);
    try {
      await this.#link.ready(CONNECT_PATIENCE);
      await this.#link.run(
        this.#scripts.release,
        [lease, `${lease}:line`],
        [`${wireToken(token)} `],
      );
    } catch {
      // Left to its ttl.
    }
  }
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
