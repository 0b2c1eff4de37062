import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { redisKeys } from '../../lib/stores/redis/redis-keys.js';
import { scripts, type LuaScript } from '../../lib/stores/redis/scripts.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

/**
 * The scripts, step by step, beside a model of what they should do. No time passes that counts: every ttl is long,
 * and a step sets the clock of the records back instead (`Expire`).
 */
const TTL = 600_000;
/** As the scripts are given it. */
const WIRE_TTL = String(TTL).padStart(12, '0');
/** As late as can be: what a process knows of the server's clock is not modelled. */
const LATEST = '9999999999999999';

/** Those who are given the key when it is their turn, and those who are told to ask: see lua/parts/line.lua. */
const GIVEN = ['a', 'b', 'ab', 'dead'] as const;
const TOLD = ['c', 'd', 'cd', 'dead-too'] as const;
type Token = (typeof GIVEN)[number] | (typeof TOLD)[number];
const modeOf = (who: Token): 'g' | 'h' => ((GIVEN as readonly Token[]).includes(who) ? 'g' : 'h');
const isDead = (who: Token): boolean => who.startsWith('dead');

type Step =
  | { do: 'acquire'; token: Token; late: boolean }
  | { do: 'enqueue'; token: Token; waited: number; late: boolean }
  | { do: 'permit'; token: Token; permits: number; waits: boolean; waited: number }
  | { do: 'release'; tokens: Token[] }
  | { do: 'exchange'; tokens: Token[]; token: Token; late: boolean }
  | { do: 'releaseWith'; token: Token; permits: number; keep: boolean; done: boolean }
  | { do: 'leave'; token: Token }
  | { do: 'handOver'; from: Token; to: Token; waited: number; late: boolean }
  | { do: 'renew'; tokens: Token[] }
  | { do: 'expire' };

const given = fc.constantFrom<Token>(...GIVEN);
const told = fc.constantFrom<Token>(...TOLD);
const token = fc.oneof(given, told);
const late = fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0);
/** In µs, and far apart: real time passes between two steps, on a busy machine a lot of it. */
const waited = fc.integer({ min: 0, max: 50 }).map((n) => n * 10_000_000);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('acquire' as const), token, late }),
  fc.record({ do: fc.constant('enqueue' as const), token, waited, late }),
  fc.record({
    do: fc.constant('permit' as const),
    token: told,
    permits: fc.integer({ min: 2, max: 3 }),
    waits: fc.boolean(),
    waited,
  }),
  fc.record({
    do: fc.constant('release' as const),
    tokens: fc.array(token, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    do: fc.constant('exchange' as const),
    tokens: fc.array(token, { minLength: 1, maxLength: 2 }),
    token,
    late,
  }),
  fc.record({
    do: fc.constant('releaseWith' as const),
    token,
    permits: fc.integer({ min: 1, max: 2 }),
    keep: fc.boolean(),
    done: fc.boolean(),
  }),
  fc.record({ do: fc.constant('leave' as const), token }),
  fc.record({ do: fc.constant('handOver' as const), from: token, to: given, waited, late }),
  fc.record({
    do: fc.constant('renew' as const),
    tokens: fc.array(token, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ do: fc.constant('expire' as const) }),
);

/** Who stands in line, in which mode (see lua/parts/line.lua), and since when on the model's clock. */
interface Place {
  readonly token: Token;
  readonly mode: 'g' | 'h';
  readonly since: number;
}

/** What the key is like, in plain words. */
class Model {
  /** Who has it alone; `null` when it is only kept taken. */
  alone: Token | null | undefined;
  permits = new Map<Token | `kept ${number}`, true>();
  line: Place[] = [];
  isDone = false;

  get isFree(): boolean {
    return this.alone === undefined && this.permits.size === 0;
  }

  stand(place: Place): void {
    this.leave(place.token);
    this.line.push(place);
  }

  leave(token: Token): void {
    this.line = this.line.filter((place) => place.token !== token);
  }

  /** The next in line, in their order; those of the dead process are passed over, those that are told to ask too. */
  serve(me?: Token): Token | undefined {
    this.line.sort((one, other) => one.since - other.since);
    for (;;) {
      const place = this.line.shift();
      if (place === undefined) return undefined;
      if (place.token === me || (place.mode === 'g' && !isDead(place.token))) {
        this.alone = place.token;
        return place.token;
      }
    }
  }

  /** Told to the first who shares the key and is alive. */
  tell(): void {
    this.line.sort((one, other) => one.since - other.since);
    for (const place of this.line.filter(({ mode }) => mode === 'h')) {
      this.line.splice(this.line.indexOf(place), 1);
      if (!isDead(place.token)) return;
    }
  }

  release(token: Token): boolean {
    if (this.alone !== token) return false;
    this.alone = undefined;
    this.serve();
    return true;
  }

  claim(token: Token, place: Place | undefined): boolean {
    if (this.alone === token) return true;
    const hasLine = this.line.length > 0;
    if (place !== undefined && (!this.isFree || hasLine)) this.stand(place);
    if (!this.isFree) return false;
    const served = this.serve(token);
    if (served === undefined) this.alone = token;
    return served === undefined || served === token;
  }
}

describe('The scripts beside a model of them', () => {
  let server: RedisServer;
  let admin: Redis;
  let ear: Redis;

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
    ear = new Redis(server.url);
    // The dead one's channel has nobody who listens.
    await ear.subscribe('alive');
  });
  afterAll(async () => {
    admin.disconnect();
    ear.disconnect();
    await server.stop();
  });

  it('do what it does, whatever the order of the steps (rules 1, 2, 5, 7, 8 and 10)', async () => {
    let keys = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const run = new Run(admin, `lease/${keys++}`);
        for (const one of steps) await run.step(one);
      }),
      { numRuns: 250, interruptAfterTimeLimit: 8_000, markInterruptAsFailure: false },
    );
  }, 30_000);
});

class Run {
  readonly #model = new Model();
  readonly #names;
  #steps = 0;
  #now = 0;
  #highest = '';
  #mark: string;

  constructor(
    private readonly redis: Redis,
    key: string,
  ) {
    this.#names = redisKeys(key);
    this.#mark = this.#names.mark('tick');
  }

  async step(step: Step): Promise<void> {
    this.#steps++;
    const before = await this.#fences();
    await this.#do(step);
    await this.#compare(JSON.stringify(step), before);
  }

  /** What a claim that does not wait is told. */
  #taken(step: { token: Token; late: boolean }, answer: unknown[]): void {
    const model = this.#model;
    if (step.late) return expect(answer).toEqual([3, 0]);
    // Or somebody waited, and the record still says so: it is to ask in turn all the same.
    if (model.isFree && (model.line.length > 0 || answer[0] === 4)) {
      return expect(answer).toEqual([4, 0]);
    }
    const isGranted = model.alone === step.token || model.isFree;
    if (isGranted) model.alone = step.token;
    this.#answered(isGranted, answer);
  }

  async #do(step: Step): Promise<void> {
    const model = this.#model;
    const { lease, line, permits, holders } = this.#names;
    this.#now = await this.#time();
    switch (step.do) {
      case 'acquire': {
        const reply = await this.#eval(
          scripts.acquire,
          [lease],
          [this.#deadline(step.late), WIRE_TTL, `${step.token} i`],
        );
        return this.#taken(step, Array.isArray(reply) ? reply.slice(1) : [1, reply]);
      }
      case 'exchange': {
        const count = step.tokens.length;
        const reply = await this.#eval(
          scripts.exchange,
          [...step.tokens.flatMap(() => [lease, line]), lease],
          [
            this.#deadline(step.late),
            count,
            ...step.tokens.map((one) => `${one} `),
            WIRE_TTL,
            `${step.token} i`,
          ],
        );
        const freed = step.tokens.map((one) => Number(model.release(one)));
        const answer = Array.isArray(reply) ? reply.slice(1) : [1, 1, reply];
        expect(answer.slice(0, count)).toEqual(freed);
        return this.#taken(step, answer.slice(count));
      }
      case 'enqueue': {
        // Who is only told has a unit of work to look at.
        const marks = modeOf(step.token) === 'h' ? [this.#mark] : [];
        const reply = await this.#eval(
          scripts.enqueue,
          [lease, line, ...marks],
          [this.#deadline(step.late), ...this.#claim(step.token, step.waited)],
        );
        if (step.late) return void expect(reply.slice(1)).toEqual([3, 0]);
        if (marks.length > 0 && model.isDone && model.alone !== step.token) {
          return void expect(reply.slice(1)).toEqual([2, 0]);
        }
        const isGranted = model.claim(step.token, this.#place(step.token, step.waited));
        return this.#answered(isGranted, reply.slice(1));
      }
      case 'permit': {
        const waits = step.waits
          ? this.#claim(step.token, step.waited)
          : [step.token, WIRE_TTL, 'i', ''];
        const reply = await this.#eval(
          scripts.acquirePermit,
          [lease, line, permits, holders],
          [this.#deadline(false), ...waits, step.permits],
        );
        const has = model.permits.has(step.token);
        const isGranted = has || (model.alone === undefined && model.permits.size < step.permits);
        if (isGranted) {
          model.permits.set(step.token, true);
          if (step.waits) model.leave(step.token);
          if (model.line.length > 0 && model.permits.size < step.permits) model.tell();
        } else if (step.waits) {
          model.stand(this.#place(step.token, step.waited));
        }
        return this.#answered(isGranted, reply.slice(1));
      }
      case 'release': {
        const keys = step.tokens.flatMap(() => [lease, line]);
        const reply = await this.#eval(
          scripts.release,
          keys,
          step.tokens.map((one) => `${one} `),
        );
        const freed = step.tokens.map((one) => Number(model.release(one)));
        return void expect(reply).toEqual(freed.length === 1 ? freed[0] : freed);
      }
      case 'releaseWith': {
        const { keep, done } = step;
        const keys = [lease, line, permits, holders, ...(done ? [this.#mark] : [])];
        const args = [step.token, TTL, step.permits, keep ? TTL : 0, TTL];
        const reply = await this.#eval(scripts.releaseWith, keys, args);
        const freed =
          step.permits === 1
            ? this.#freeAlone(step.token, keep)
            : this.#freePermit(step.token, keep);
        if (freed && done) model.isDone = true;
        return void expect(reply).toBe(Number(freed));
      }
      case 'leave': {
        const stood = model.line.some((place) => place.token === step.token);
        const hadLine = model.line.length > 0;
        const place = `${step.token} ${WIRE_TTL} ${modeOf(step.token)} ${channelOf(step.token)} i`;
        const reply = await this.#eval(scripts.leave, [lease, line], [step.token, place]);
        model.leave(step.token);
        const held = model.alone === step.token;
        if (held) model.release(step.token);
        else if (model.isFree && hadLine) model.serve();
        else if (model.alone === undefined && !stood) model.tell();
        return void expect(reply).toBe(Number(held));
      }
      case 'handOver': {
        const args = [this.#deadline(step.late), ...this.#claim(step.to, step.waited), step.from];
        const said = await this.#eval(scripts.handOver, [lease, line], args);
        // A key that was freed and granted needs no more than its fence.
        const reply = Array.isArray(said) ? said : [this.#now, 1, 1, said];
        const freed = model.alone === step.from;
        expect(reply[1]).toBe(Number(freed));
        if (step.late) {
          model.release(step.from);
          return void expect(reply.slice(2)).toEqual([3, 0]);
        }
        if (freed) model.alone = undefined;
        const isGranted = model.claim(step.to, this.#place(step.to, step.waited));
        return this.#answered(isGranted, reply.slice(2));
      }
      case 'renew': {
        const keys = step.tokens.map(() => lease);
        const reply = await this.#eval(
          scripts.renew,
          keys,
          step.tokens.flatMap((one) => [WIRE_TTL, one]),
        );
        return void expect(reply.slice(1)).toEqual(
          step.tokens.map((one) => Number(model.alone === one)),
        );
      }
      case 'expire':
        return this.#expire();
    }
  }

  #freeAlone(token: Token, keep: boolean): boolean {
    const model = this.#model;
    if (!keep) return model.release(token);
    if (model.alone !== token) return false;
    model.alone = null;
    return true;
  }

  #freePermit(token: Token, keep: boolean): boolean {
    const model = this.#model;
    if (!model.permits.delete(token)) return false;
    if (keep) model.permits.set(`kept ${this.#steps}`, true);
    if (model.permits.size === 0) model.serve();
    else if (!keep) model.tell();
    return true;
  }

  /** All that is held ends by itself, as if its time had passed. */
  async #expire(): Promise<void> {
    const { lease, permits, holders } = this.#names;
    const record = await this.redis.get(lease);
    if (record !== null && record.length > 16) {
      const never = `${'0'.repeat(16)} ${'0'.repeat(12)} ${'0'.repeat(13)}`;
      const long = `${record.slice(0, 16)} ${never} ${record[61]} `;
      await this.redis.set(lease, long, 'KEEPTTL');
    }
    await this.redis.del(permits, holders);
    this.#model.alone = undefined;
    this.#model.permits.clear();
  }

  /** What Redis has is what the model has; and fences only grow. */
  async #compare(step: string, before: readonly string[]): Promise<void> {
    const model = this.#model;
    const { lease, line, permits } = this.#names;
    const now = await this.#time();
    const record = (await this.redis.get(lease)) ?? '';
    // See lua/parts/record.lua.
    const until = Math.floor(Number(record.slice(17, 33)) / 1_000) + Number(record.slice(34, 46));
    const owner = until > now ? record.slice(63).split(' ')[0] || null : undefined;
    expect([step, owner]).toEqual([step, model.alone]);
    const members = await this.redis.zrangebyscore(permits, now, '+inf');
    expect([step, members.map((one) => one.replace(/:.*/, '')).toSorted()]).toEqual([
      step,
      [...model.permits.keys()].map((one) => one.replace(/ .*/, '')).toSorted(),
    ]);
    const places = await this.redis.zrange(line, '0', '-1');
    const seen = places.map((place) => place.split(' ')).map(([who, , mode]) => `${who} ${mode}`);
    const expected = model.line.map(({ token: who, mode }) => `${who} ${mode}`);
    expect([step, seen.toSorted()]).toEqual([step, expected.toSorted()]);
    // Whoever waits is found by the next release or claim.
    if (places.length > 0) expect([step, record[61]]).toEqual([step, 'L']);
    const fence = record.slice(0, 16);
    expect(fence >= (before[0] ?? '')).toBe(true);
    if (this.#highest < fence) this.#highest = fence;
    expect(fence).toBe(this.#highest);
    for (const name of [lease, line, permits]) expect(await this.redis.pttl(name)).not.toBe(-1);
  }

  #answered(isGranted: boolean, [answer, figure]: unknown[]): void {
    expect(answer).toBe(isGranted ? 1 : 0);
    if (isGranted) expect(figure).toMatch(/^\d{16}$/);
    else expect(figure as number).toBeGreaterThan(0);
  }

  async #fences(): Promise<string[]> {
    const record = await this.redis.get(this.#names.lease);
    return record === null ? [] : [record.slice(0, 16)];
  }

  #claim(who: Token, waitedMs: number): (string | number)[] {
    const waits = `${this.#waited(waitedMs)} ${LATEST} ${modeOf(who)} ${channelOf(who)}`;
    return [who, WIRE_TTL, 'i', waits];
  }

  #place(who: Token, waitedMs: number): Place {
    return { token: who, mode: modeOf(who), since: -this.#waited(waitedMs) };
  }

  /** In microseconds. */
  #deadline(isLate: boolean): string {
    return `${isLate ? this.#now : this.#now + TTL}000`;
  }

  /** Whoever comes later has waited less, also when both come in the same millisecond. */
  #waited(ms: number): number {
    return ms + 5_000 - 50 * this.#steps;
  }

  async #time(): Promise<number> {
    const [seconds, micros] = (await this.redis.time()) as unknown as [string, string];
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  }

  // The answers are of several shapes; what is expected of each says which.
  // oxlint-disable-next-line no-explicit-any
  async #eval({ source }: LuaScript, keys: string[], args: (string | number)[]): Promise<any> {
    return this.redis.eval(source, keys.length, ...keys, ...args);
  }
}

const channelOf = (who: Token): string => (isDead(who) ? 'nobody' : 'alive');
