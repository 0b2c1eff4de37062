import type { Redis, RedisOptions } from 'ioredis';
import { parseDuration, type Duration } from '../../lease/duration.js';
import { BAD_REPLY, CLAIM_TOO_LATE, NOT_CONNECTED } from '../../lease.messages.js';
import {
  ownerPrefix,
  type Claim,
  type Grant,
  type Hold,
  type LeaseHolder,
  type LeaseRecord,
  type LeaseStore,
  type Refusal,
  type ReleaseHow,
  type RenewOutcome,
} from '../lease-store.js';
import {
  connectionFor,
  hangUp,
  hideSecrets,
  untilReady,
  type IoredisClient,
} from './redis-connection.js';
import { qualifiedKey, redisKeys, scanPattern } from './redis-keys.js';
import { scripts } from './scripts.js';
import { ServerTime } from './server-time.js';

/**
 * @publicApi
 */
export interface RedisLeaseStoreOptions {
  /**
   * How long the fence of a key is remembered after its last grant: the longest step back of the server's clock
   * that fences survive. What is left of a key in Redis goes after this time; never less than ten of its ttls.
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
  readonly limits = { minTtl: 50, maxTtl: 86_400_000, permits: true, push: false, shared: true };

  readonly #connect: () => Redis;
  readonly #time = new ServerTime();
  readonly #retention: number;
  #client: Redis;
  #closed = false;

  constructor(
    connection: string | RedisOptions | IoredisClient | undefined,
    options: RedisLeaseStoreOptions = {},
  ) {
    this.#retention = parseDuration(options.fenceRetention ?? '24h', 'fenceRetention', {
      min: 1_000,
    });
    this.#connect = () => connectionFor(connection).on('close', () => this.#time.forget());
    this.#client = this.#connect();
  }

  async open(): Promise<void> {
    if (this.#closed) {
      this.#closed = false;
      this.#client = this.#connect();
    }
    await untilReady(this.#client, CONNECT_PATIENCE);
    await this.#learnTime();
  }

  async acquire(claim: Claim): Promise<Grant | Refusal> {
    const until = performance.now() + claim.patience;
    await this.#ready(claim.patience);
    for (;;) {
      if (!this.#time.isKnown) await this.#learnTime();
      const [verdict, now, figure] = await this.#claim(
        claim,
        this.#time.deadline(until - performance.now()),
      );
      this.#time.heard(now);
      switch (verdict) {
        case GRANTED:
          if (figure <= 0) throw new Error(BAD_REPLY('acquire'));
          return { granted: true, fence: figure };
        case HELD:
          return { granted: false, reason: 'held', retryAfterMs: Math.max(0, figure) };
        case DONE:
          return { granted: false, reason: 'done' };
        case LATE:
          // Too late, or the server's clock was set forward: known by now, so ask again while somebody waits.
          if (performance.now() < until) continue;
          return { granted: false, reason: 'unavailable', cause: new Error(CLAIM_TOO_LATE()) };
        default:
          throw new Error(BAD_REPLY('acquire'));
      }
    }
  }

  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    await this.#ready(CONNECT_PATIENCE);
    const keys = holds.flatMap(({ key }) => {
      const { lease, permits } = redisKeys(key);
      return [lease, permits];
    });
    const longest = holds.reduce((most, { ttl }) => Math.max(most, ttl), 0);
    const args = holds.flatMap(({ token, ttl, permits }) => [token, ms(ttl), permits]);
    const reply = await this.#run(scripts.renew, keys, [this.#retentionOf(longest), ...args]);
    const [now, ...outcomes] = integers(reply, 'renew');
    if (outcomes.length !== holds.length) throw new Error(BAD_REPLY('renew'));
    this.#time.heard(now!);
    return outcomes.map((outcome) => RENEWED[outcome] ?? 'unknown');
  }

  async release(
    { key, token, ttl, permits }: Hold,
    { keepFor = 0, done }: ReleaseHow,
  ): Promise<boolean> {
    await this.#ready(CONNECT_PATIENCE);
    const names = redisKeys(key);
    const keys = [names.lease, names.permits, ...(done ? [names.mark(done.once)] : [])];
    const args = [token, permits, ms(keepFor), ms(done?.remember ?? 0), this.#retentionOf(ttl)];
    const freed = await this.#run(scripts.release, keys, args);
    if (freed !== 0 && freed !== 1) throw new Error(BAD_REPLY('release'));
    return freed === 1;
  }

  async inspect(key: string): Promise<LeaseRecord | null> {
    await this.#ready(CONNECT_PATIENCE);
    const { lease, permits } = redisKeys(key);
    return toRecord(key, await this.#run(scripts.inspect, [lease, permits], []));
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
    await hangUp(this.#client);
  }

  async #claim(claim: Claim, deadline: number): Promise<readonly [number, number, number]> {
    const names = redisKeys(claim.key);
    const { token, ttl, permits, once, instance } = claim;
    const mark = once === undefined ? [] : [names.mark(once)];
    const args = [token, ms(ttl), deadline, this.#retentionOf(ttl), instance];
    const reply =
      permits === 1
        ? await this.#run(scripts.acquire, [names.lease, ...mark], args)
        : await this.#run(
            scripts.acquirePermit,
            [names.lease, names.permits, ...mark],
            [...args, permits],
          );
    const [verdict = NaN, now, figure = 0] = integers(reply, 'acquire');
    if (now === undefined) throw new Error(BAD_REPLY('acquire'));
    return [verdict, now, figure];
  }

  #retentionOf(ttl: number): number {
    return ms(Math.max(this.#retention, 10 * ttl));
  }

  async #learnTime(): Promise<void> {
    const reply: unknown = await this.#client.time().catch((error: unknown) => {
      throw hideSecrets(error);
    });
    // Without a clock there is no deadline, and a claim without one could be executed late (rule 2).
    const isTime = Array.isArray(reply) && reply.length === 2 && reply.every(isDigits);
    if (!isTime) throw new Error(BAD_REPLY('TIME'));
    const now = Number(reply[0]) * 1_000 + Math.floor(Number(reply[1]) / 1_000);
    this.#time.heard(now);
  }

  #ready(patience: number): Promise<void> | undefined {
    if (this.#closed) throw new Error(NOT_CONNECTED());
    return this.#client.status === 'ready' ? undefined : untilReady(this.#client, patience);
  }

  /** By its SHA; a server that forgot the script (restart, SCRIPT FLUSH) is sent it whole, with the same token. */
  async #run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const client = this.#client;
    try {
      return await client
        .evalsha(script.sha1, keys.length, ...keys, ...args)
        .catch((error: unknown) => {
          if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
          return client.eval(script.source, keys.length, ...keys, ...args);
        });
    } catch (error) {
      throw hideSecrets(error);
    }
  }
}

/** Redis counts whole milliseconds; up, so that a claim never ends before the holder thinks it does. */
const ms = (value: number): number => Math.ceil(value);

const isDigits = (text: unknown): boolean => typeof text === 'string' && /^\d{1,15}$/.test(text);

/** Whole numbers and nothing else: on an answer that our scripts cannot have given, nothing is granted or lost. */
function integers(reply: unknown, command: string): number[] {
  if (!Array.isArray(reply) || reply.length === 0 || !reply.every(Number.isSafeInteger)) {
    throw new Error(BAD_REPLY(command));
  }
  return reply;
}

function toRecord(key: string, reply: unknown): LeaseRecord | null {
  if (!Array.isArray(reply) || !Number.isSafeInteger(reply[0])) {
    throw new Error(BAD_REPLY('inspect'));
  }
  const now: number = reply[0];
  const lease = pairs(reply[1]);
  const permits = pairs(reply[2]);
  const ends: number[] = [];
  const holders: LeaseHolder[] = [];
  const add = (
    token: string,
    until: number,
    fence: string,
    since: string,
    instance: string,
  ): void => {
    if (until <= now) return;
    ends.push(until);
    if (token === '') return;
    holders.push({
      instance,
      fence: Number(fence),
      owner: ownerPrefix(token),
      since: new Date(Number(since)),
      expiresInMs: until - now,
    });
  };
  const field = (name: string): string => lease.get(name) ?? '';
  add(field('owner'), Number(field('until')), field('fence'), field('since'), field('instance'));
  for (const [token, until] of permits) {
    const [fence = '', since = '', ...instance] = field(`permit:${token}`).split(':');
    add(token.startsWith('kept:') ? '' : token, Number(until), fence, since, instance.join(':'));
  }
  if (ends.length === 0) return null;
  return { key, holders, freeInMs: Math.min(...ends) - now };
}

function pairs(reply: unknown): Map<string, string> {
  const flat = Array.isArray(reply) ? reply.flat() : [];
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) map.set(String(flat[i]), String(flat[i + 1]));
  return map;
}
