import type { Redis, RedisOptions } from 'ioredis';
import { BAD_REPLY, CLAIM_TOO_LATE, NOT_CONNECTED, REDLOCK_NO_VOTE } from '../../lease.messages.js';
import type { Claim, Hold, ReleaseHow } from '../lease-store.js';
import {
  connectionFor,
  hangUp,
  hideSecrets,
  untilReady,
  type IoredisClient,
} from '../redis/redis-connection.js';
import { qualifiedKey, redisKeys, scanPattern } from '../redis/redis-keys.js';
import { assertNotTooOld } from '../redis/server-info.js';
import { ServerTime } from '../redis/server-time.js';
import { Silence } from '../redis/silence.js';
import { readToken, wireToken } from '../redis/wire-token.js';
import { addressOf } from './node-address.js';
import { Reply } from './reply.js';
import { scripts, type LuaScript } from './scripts.js';
import {
  LONGEST_TTL,
  type NodeRecord,
  type NodeState,
  type RenewVote,
  type RoundNumber,
  type Vote,
  type Voter,
  type Wanted,
  type YesNo,
} from './voter.js';

/** What a node keeps of itself; no lease has a name without braces. */
const NODE = 'nestjs-lease:redlock';
/** No answer to a question that is not a claim is waited for longer than this. */
export const NODE_PATIENCE = 2_000;

/** As often a node is asked that says it is too late when it is not by what it said of its clock. */
const TRIES = 3;

const YES_NO: Readonly<Record<number, YesNo>> = { 0: 'no', 1: 'yes', 3: 'unknown', 5: 'unknown' };
const RENEWED: Readonly<Record<number, RenewVote>> = {
  0: 'absent',
  1: 'renewed',
  2: 'unknown',
  4: 'taken',
};

/** One of the independent Redis servers: its connection, its clock, its scripts. */
export class RedlockNode implements Voter {
  readonly #connect: () => Redis;
  readonly #time = new ServerTime();
  readonly #silence = new Silence();
  readonly #longest: number;
  readonly #onQuarantine: (node: RedlockNode, waitMs: number) => void;
  #client: Redis;
  #run: string | undefined;
  #greeting: Promise<unknown> | undefined;
  #closed = false;

  /** @param longest - the longest ttl that is claimed here, ms; 0 for no quarantine */
  constructor(
    connection: string | RedisOptions | IoredisClient,
    longest: number,
    onQuarantine: (node: RedlockNode, waitMs: number) => void,
  ) {
    this.#longest = longest;
    this.#onQuarantine = onQuarantine;
    this.#connect = () =>
      this.#silence.watch(connectionFor(connection)).on('close', () => {
        // Another server may answer from now on.
        this.#time.forget();
        this.#run = undefined;
      });
    this.#client = this.#connect();
  }

  get name(): string {
    return this.address ?? 'a Redis behind Sentinel';
  }

  /** Where it is, as far as can be known without connecting. */
  get address(): string | undefined {
    return addressOf(this.#client.options);
  }

  get run(): string | undefined {
    return this.#run;
  }

  /** Resolves when it is connected and known. */
  async open(): Promise<NodeState> {
    if (this.#closed) {
      this.#closed = false;
      this.#client = this.#connect();
    }
    return this.look();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await hangUp(this.#client);
  }

  async claim(claim: Claim, wanted: Wanted, round: RoundNumber): Promise<Vote> {
    const { lease, mark } = this.#namesOf(claim.key, claim.once);
    for (let tries = 1; ; tries++) {
      await this.#ready(wanted.until);
      if (performance.now() >= wanted.until || !wanted.isWanted()) {
        throw new Error(CLAIM_TOO_LATE());
      }
      const deadline = this.#deadline(wanted.until);
      const args = [deadline, wireToken(claim.token), ms(claim.ttl), claim.instance, round];
      const vote = this.#voteOf(await this.#call(scripts.claim, [lease, ...mark], args));
      // Of a mark that was not asked for nothing is known.
      if (vote.kind === 'done' && claim.once === undefined) throw new Error(BAD_REPLY('claim'));
      // Too late, or the clock of the node was set forward: known by now, so ask again while somebody waits.
      const isLast = tries === TRIES || performance.now() >= wanted.until;
      if (vote.kind !== 'late' || isLast) return vote;
    }
  }

  async settle(hold: Hold, fence: number, round: RoundNumber): Promise<YesNo> {
    const { lease } = this.#namesOf(hold.key);
    return this.#yesNo(
      await this.#call(scripts.settle, [lease], [wireToken(hold.token), String(fence), round]),
    );
  }

  async renew(holds: readonly Hold[], until: number): Promise<readonly RenewVote[]> {
    await this.#ready(until);
    const leases = holds.map(({ key }) => redisKeys(key).lease);
    const args = holds.flatMap(({ ttl, token }) => [ms(ttl), wireToken(token)]);
    const reply = await this.#call(scripts.renew, leases, args);
    const wait = reply.integer(-1);
    if (wait > LONGEST_TTL) reply.bad();
    const votes = holds.map(() => RENEWED[reply.integer()] ?? reply.bad());
    reply.end();
    if (wait >= 0) this.#onQuarantine(this, wait);
    return votes;
  }

  async heal(hold: Hold, record: NodeRecord, { until, isWanted }: Wanted): Promise<YesNo> {
    await this.#ready(until);
    if (!isWanted()) return 'no';
    const { lease } = this.#namesOf(hold.key);
    const owner = [wireToken(hold.token), ms(hold.ttl), record.instance, String(record.fence)];
    return this.#yesNo(await this.#call(scripts.heal, [lease], [this.#deadline(until), ...owner]));
  }

  async release(
    hold: Hold,
    how: ReleaseHow,
    { until, isWanted }: Wanted,
    inVain: RoundNumber = 0,
  ): Promise<YesNo> {
    await this.#connected(until);
    if (!isWanted()) return 'unknown';
    const { keepFor = 0, done } = how;
    const { lease, mark } = this.#namesOf(hold.key, done?.once);
    const args = [wireToken(hold.token), ms(keepFor), ms(done?.remember ?? 0), inVain];
    return this.#yesNo(await this.#call(scripts.release, [lease, ...mark], args));
  }

  async inspect(key: string): Promise<NodeRecord | undefined> {
    await this.#connected(performance.now() + NODE_PATIENCE);
    const reply = await this.#call(scripts.inspect, [redisKeys(key).lease], []);
    const votes = reply.integer() === 1;
    const wait = reply.time();
    if (!votes) {
      this.#onQuarantine(this, wait);
      throw new Error(REDLOCK_NO_VOTE(this.name, wait));
    }
    if (reply.isAtEnd) return undefined;
    const record = {
      token: readToken(reply.text()),
      fence: reply.fence(),
      settled: reply.text() === '1',
      instance: reply.text(),
      since: reply.date(),
      leftMs: reply.integer(),
    };
    reply.end();
    return record;
  }

  /** The keys with the given beginning that may be held on this node, as far as they are `isWanted`. */
  async keys(prefix: string, isWanted: () => boolean): Promise<readonly string[]> {
    const keys: string[] = [];
    await this.#connected(performance.now() + NODE_PATIENCE);
    const { keyPrefix = '' } = this.#client.options;
    const pattern = scanPattern(keyPrefix, prefix);
    let cursor = '0';
    do {
      const scanned = this.#client.scan(cursor, 'MATCH', pattern, 'COUNT', 500, 'TYPE', 'hash');
      const [next, names] = await this.#silence.during(scanned);
      cursor = next;
      for (const name of names) {
        const key = qualifiedKey(name.slice(keyPrefix.length));
        if (key?.startsWith(prefix)) keys.push(key);
      }
    } while (cursor !== '0' && isWanted());
    return keys;
  }

  async look(): Promise<NodeState> {
    await this.#connected(performance.now() + NODE_PATIENCE);
    // Of a connection that was not asked before also how old the server is. One that may not be asked can do all the same.
    const told =
      this.#run === undefined
        ? this.#silence.during(this.#client.info('server').catch(() => ''))
        : undefined;
    const [reply, info] = await Promise.all([this.#call(scripts.look, [], []), told]);
    assertNotTooOld(info);
    const run = reply.text();
    const votes = reply.integer() === 1;
    const waitMs = reply.time();
    const state = { run, votes, waitMs, high: reply.high(), longest: reply.time() };
    reply.end();
    this.#run = run;
    if (!votes) this.#onQuarantine(this, waitMs);
    return state;
  }

  async admit(run: string, floor: number, longest: number): Promise<number> {
    const reply = await this.#call(scripts.admit, [], [run, String(floor), ms(longest)]);
    const isAdmitted = reply.integer() === 1;
    const wait = reply.time();
    reply.end();
    return isAdmitted ? 0 : Math.max(1, wait);
  }

  #namesOf(key: string, once?: string): { lease: string; mark: string[] } {
    const names = redisKeys(key);
    return { lease: names.lease, mark: once === undefined ? [] : [names.mark(once)] };
  }

  #voteOf(reply: Reply): Vote {
    const kind = reply.integer();
    switch (kind) {
      case 1:
        return { kind: 'granted', fence: reply.fence(), settled: reply.last() === '1' };
      case 0:
        return { kind: 'held', waitMs: reply.integer(), by: reply.last() };
      case 2:
        return { kind: 'done' };
      case 3:
        return { kind: 'late' };
      case 5: {
        const waitMs = reply.time();
        this.#onQuarantine(this, waitMs);
        return { kind: 'quarantined', waitMs };
      }
      default:
        return reply.bad();
    }
  }

  #yesNo(reply: Reply): YesNo {
    const answer = reply.integer();
    const wait = reply.time();
    reply.end();
    if (answer === 5) this.#onQuarantine(this, wait);
    return YES_NO[answer] ?? reply.bad();
  }

  /** µs of the node's clock at which ours will not have reached `until` yet. */
  #deadline(until: number): string {
    return `${this.#time.deadlineAt(until)}000`;
  }

  #connected(until: number): Promise<void> | undefined {
    if (this.#closed) throw new Error(NOT_CONNECTED());
    const client = this.#client;
    return client.status === 'ready'
      ? undefined
      : untilReady(client, Math.max(0, until - performance.now()));
  }

  /** Connected, and its clock and its run known: a claim needs a deadline in its time (rule 2). */
  async #ready(until: number): Promise<void> {
    if (this.#closed || this.#client.status !== 'ready') await this.#connected(until);
    if (this.#run !== undefined && this.#time.isFreshAt(performance.now())) return;
    this.#greeting ??= this.look().finally(() => (this.#greeting = undefined));
    await this.#greeting;
  }

  /** By its SHA; a server that forgot the script (restart, SCRIPT FLUSH) is sent it whole, with the same token. */
  async #call(
    { name, sha1, source }: LuaScript,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply> {
    const client = this.#client;
    const all = [NODE, ...keys, this.#longest, ...args];
    const count = keys.length + 1;
    const asked = client.evalsha(sha1, count, ...all).catch((error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return client.eval(source, count, ...all);
    });
    const answer: unknown = await this.#silence.during(asked).catch((error: unknown) => {
      throw hideSecrets(error);
    });
    const reply = new Reply(name, answer);
    // Of another connection by now: its time may be another server's.
    if (client.status === 'ready') this.#time.heard(reply.integer());
    else throw new Error(BAD_REPLY(name));
    return reply;
  }
}

/** Redis counts whole milliseconds; up, so that a claim never ends before the holder thinks it does. */
const ms = (value: number): number => Math.ceil(value);
