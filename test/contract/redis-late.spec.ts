import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startFakeRedis, timeReply, type FakeRedis } from '../support/fake-redis.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { settle } from '../support/virtual-clock.js';

describe('A claim that Redis executes late', () => {
  let server: RedisServer;
  let admin: Redis;
  let store: RedisLeaseStore;

  beforeEach(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
    store = new RedisLeaseStore(server.url);
    // Connected, the clock and the script known: what is sent next is the claim, in one step.
    await take(store, 'lease/other');
    await take(store, 'lease/other permits', { permits: 2 });
    await admin.config('RESETSTAT');
  });
  afterEach(async () => {
    await store.close();
    admin.disconnect();
    await server.stop();
  });

  const executedClaims = async (): Promise<boolean> =>
    ((await admin.info('commandstats')) as string).includes('cmdstat_evalsha:calls=1');

  it.each([1, 2])('is not granted, with permits: %i (rule 2)', async (permits) => {
    const claim = claimOf('lease/late', { permits, patience: 150 });
    await server.pause();
    const since = performance.now();
    const answer = store.acquire(claim);
    await until(() => performance.now() - since > claim.patience);
    server.resume();
    expect(await answer).toMatchObject({ granted: false, reason: 'unavailable' });
    expect(await store.inspect(claim.key)).toBeNull();
  });

  it('is not granted when its client is long gone (rule 2)', async () => {
    const claim = claimOf('lease/late', { patience: 150 });
    await server.pause();
    const since = performance.now();
    const answer = store.acquire(claim).catch(() => undefined);
    // Sent, then gone.
    await settle();
    await store.close();
    await answer;
    await until(() => performance.now() - since > claim.patience);
    server.resume();
    await until(executedClaims);
    expect(await admin.exists('lease:{late}')).toBe(0);
  });

  it('but in its time is granted', async () => {
    await server.pause();
    const answer = store.acquire(claimOf('lease/slow', { patience: 10_000 }));
    server.resume();
    expect(await answer).toMatchObject({ granted: true });
  });
});

describe('Redis that forgot its scripts', () => {
  it('is sent them again, under the same token (rule 2)', async () => {
    const server = await startRedis();
    const admin = new Redis(server.url);
    const store = new RedisLeaseStore(server.url);
    await store.open();
    const seen: string[][] = [];
    const monitor = await admin.monitor();
    monitor.on('monitor', (_: string, args: string[]) => seen.push(args));
    for (const key of ['lease/first', 'lease/flushed']) {
      await admin.script('FLUSH');
      const claim = claimOf(key);
      expect(await store.acquire(claim)).toMatchObject({ granted: true });
      const sent = (): string[] =>
        seen
          .filter((args) => args.some((arg) => arg.startsWith(claim.token)))
          .map(([name]) => name!.toLowerCase());
      // The script's own commands name the token too.
      await until(() => sent().includes('eval'));
      expect(sent().filter((name) => name.startsWith('eval'))).toEqual(['evalsha', 'eval']);
    }
    const again = await take(store, 'lease/third');
    await admin.script('FLUSH');
    expect(await store.renew([again])).toEqual(['renewed']);
    await admin.script('FLUSH');
    expect(await store.release(again, {})).toBe(true);
    monitor.disconnect();
    admin.disconnect();
    await store.close();
    await server.stop();
  });
});

describe('The deadline of a claim', () => {
  const HOUR = 3_600_000;
  let fake: FakeRedis;
  let store: RedisLeaseStore;
  /** Of the server; nobody else's takes part (rule 3). */
  let clock: number;
  let verdict: (now: number) => string;

  beforeEach(async () => {
    clock = 5 * HOUR;
    verdict = (now) => `*3\r\n:${now}\r\n:1\r\n:${now * 1_000}\r\n`;
    fake = await startFakeRedis(([name]) => {
      if (name === 'TIME') return timeReply(clock);
      return name === 'EVALSHA' ? verdict(clock) : undefined;
    });
    store = new RedisLeaseStore(fake.url);
  });
  afterEach(async () => {
    await store.close();
    await fake.close();
  });

  const asked = (): string[] =>
    fake.commands.map(([name]) => name).filter((name) => name === 'TIME' || name === 'EVALSHA');
  const claims = (): { token: string; deadline: number }[] =>
    fake.commands
      .filter(([name]) => name === 'EVALSHA')
      // The name of the lease, and of its line if it is asked for by itself; then the deadline and the token.
      .map(([, , keys, ...rest]) => rest.slice(Number(keys)))
      .map(([deadline, ...args]) => ({
        token: args.find((arg) => arg.length >= 36)!.slice(0, 36),
        // In microseconds there.
        deadline: Number(deadline) / 1_000,
      }));

  it('is in the time of the server, which is asked for it once (rule 3)', async () => {
    await take(store, 'lease/a', { patience: 1_000 });
    await take(store, 'lease/b', { patience: 1_000 });
    expect(asked()).toEqual(['TIME', 'EVALSHA', 'EVALSHA']);
    for (const { deadline } of claims()) {
      expect(deadline).toBeGreaterThan(clock);
      expect(deadline).toBeLessThanOrEqual(clock + 2_000);
    }
  });

  it('is asked for anew after a reconnect: it may be another server (rule 3)', async () => {
    await take(store, 'lease/a');
    clock += HOUR;
    fake.dropConnections();
    await until(() => store.acquire(claimOf('lease/b')).catch(() => undefined));
    expect(asked().slice(0, 4)).toEqual(['TIME', 'EVALSHA', 'TIME', 'EVALSHA']);
    expect(claims()[1]!.deadline).toBeGreaterThan(clock);
  });

  it('follows a server whose clock was set forward, under the same token (rule 2)', async () => {
    await take(store, 'lease/a');
    clock += HOUR;
    const grants = verdict;
    verdict = (now) => {
      verdict = grants;
      return `*3\r\n:${now}\r\n:3\r\n:0\r\n`;
    };
    const { token } = await take(store, 'lease/b');
    const [, refused, granted] = claims();
    expect([refused!.token, granted!.token]).toEqual([token, token]);
    expect(refused!.deadline).toBeLessThan(clock);
    expect(granted!.deadline).toBeGreaterThan(clock);
  });

  it('ends the asking when the server always finds it passed (rule 9)', async () => {
    verdict = (now) => `*3\r\n:${now}\r\n:3\r\n:0\r\n`;
    // Else a slow machine spends the patience on connecting, which is another failure.
    await store.open();
    const answer = await store.acquire(claimOf('lease/a', { patience: 50 }));
    expect(answer).toMatchObject({ granted: false, reason: 'unavailable' });
  });
});
