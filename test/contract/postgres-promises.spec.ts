import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Client, Pool } from 'pg';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { Listener } from '../../lib/stores/postgres/listener.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { statementsFor } from '../../lib/stores/postgres/statements.js';
import { tableOf } from '../../lib/stores/postgres/table.js';
import { claimOf, take } from '../support/claims.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { PASSWORD, startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';
import { VirtualClock } from '../support/virtual-clock.js';

let server: PostgresServer;
let admin: Pool;
let store: PostgresLeaseStore;

beforeAll(async () => {
  server = await startPostgres();
  admin = new Pool({ connectionString: server.url });
  admin.on('error', () => undefined);
});
beforeEach(async () => {
  store = new PostgresLeaseStore(server.url);
  // Connected, the clock known, the tables there.
  await store.open();
});
afterEach(() => store.close());
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const value = async (sql: string): Promise<string> =>
  String(Object.values((await admin.query<object>(sql)).rows[0]!)[0]);

describe('Of eight connections that race', () => {
  it.each([1, 3])(
    '200 times, as many win as there are permits: %i (rule 1)',
    async (permits) => {
      const stores = Array.from(
        { length: 8 },
        () => new PostgresLeaseStore({ connectionString: server.url, max: 1 }),
      );
      await Promise.all(stores.map((one) => one.open()));
      for (let round = 0; round < 200; round++) {
        // Some keys are new, and some have a row already.
        const claims = stores.map(() =>
          claimOf(`lease/race-${permits}-${round % 50}`, { permits, patience: 10_000 }),
        );
        const answers = await Promise.all(stores.map((one, i) => one.acquire(claims[i]!)));
        const won = claims.filter((_, i) => answers[i]!.granted);
        expect(won).toHaveLength(permits);
        await Promise.all(won.map((claim) => store.release(claim, {})));
      }
      await Promise.all(stores.map((one) => one.close()));
    },
    60_000,
  );

  it('for a unit of work, one does it, however short it is', async () => {
    const stores = Array.from({ length: 8 }, () => new PostgresLeaseStore(server.url));
    await Promise.all(stores.map((one) => one.open()));
    for (let round = 0; round < 60; round++) {
      const once = `tick ${round}`;
      const runs = stores.map(async (one) => {
        const claim = claimOf('lease/cron', { once, patience: 10_000 });
        const answer = await one.acquire(claim);
        if (answer.granted) await one.release(claim, { done: { once, remember: 60_000 } });
        return answer.granted;
      });
      expect((await Promise.all(runs)).filter(Boolean)).toHaveLength(1);
    }
    await Promise.all(stores.map((one) => one.close()));
  }, 60_000);

  it('to renew the same keys in different orders, none waits for another', async () => {
    const keys = Array.from({ length: 20 }, (_, i) => `lease/shared-${i}`);
    const hold = () => Promise.all(keys.map((key) => take(store, key, { permits: 2 })));
    const [one, two] = [await hold(), await hold()];
    const renewals = Array.from({ length: 40 }, (_, i) =>
      store.renew(i % 2 ? one : two.toReversed()),
    );
    for (const outcomes of await Promise.all(renewals)) {
      expect(new Set(outcomes)).toEqual(new Set(['renewed']));
    }
    expect(server.log).not.toContain('deadlock');
  });
});

/** Somebody waits for a lock that is held. */
const isBlocked = async (): Promise<boolean> =>
  (await value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")) !== '0';

describe('A statement that has to wait for a row', () => {
  it('does not grant a unit of work that was done meanwhile', async () => {
    const key = 'lease/overtaken';
    await store.release(await take(store, key), {});
    const faster = await admin.connect();
    await faster.query('BEGIN');
    await faster.query('UPDATE nestjs_lease SET fence = fence + 1 WHERE key = $1', [key]);
    const answer = store.acquire(claimOf(key, { once: 'tick', patience: 10_000 }));
    await until(isBlocked);
    const mark = 'INSERT INTO nestjs_lease_done VALUES ($1, $2, $3)';
    await faster.query(mark, [key, 'tick', (Date.now() + 60_000) * 1_000]);
    await faster.query('COMMIT');
    faster.release();
    expect(await answer).toEqual({ granted: false, reason: 'done' });
  });

  it('does not grant what was renewed meanwhile', async () => {
    const held = await take(store, 'lease/renewed', { ttl: 200 });
    const faster = await admin.connect();
    await faster.query('BEGIN');
    const longer = (Date.now() + 60_000) * 1_000;
    const renewal = `UPDATE nestjs_lease SET holders = jsonb_set(holders, '{0,until}', '${longer}') WHERE key = $1`;
    await faster.query(renewal, [held.key]);
    await until(async () => (await store.inspect(held.key)) === null);
    const answer = store.acquire(claimOf(held.key, { patience: 10_000 }));
    await until(isBlocked);
    await faster.query('COMMIT');
    faster.release();
    expect(await answer).toMatchObject({ granted: false, reason: 'held' });
  });

  it('to renew many has locked those before it in the order of keys, and none behind', async () => {
    const held = [];
    for (const name of ['c', 'b', 'a']) held.push(await take(store, `lease/order-${name}`));
    const first = await admin.connect();
    const lock = (name: string) =>
      first.query('SELECT FROM nestjs_lease WHERE key = $1 FOR UPDATE NOWAIT', [
        `lease/order-${name}`,
      ]);
    await first.query('BEGIN');
    await lock('b');
    const renewal = store.renew(held);
    await until(isBlocked);
    await lock('c');
    await expect(lock('a')).rejects.toThrow('could not obtain lock');
    await first.query('ROLLBACK');
    first.release();
    expect(await renewal).toEqual(['renewed', 'renewed', 'renewed']);
  });
});

describe('A claim', () => {
  it('that is refused writes nothing', async () => {
    const held = await take(store, 'lease/wal', { ttl: 60_000 });
    await admin.query('CHECKPOINT');
    // What others write meanwhile (autovacuum, a snapshot of what runs) is no part of it: one clean try is enough.
    const written = async (): Promise<number> => {
      const before = await value('SELECT pg_current_wal_insert_lsn()');
      for (let i = 0; i < 100; i++) {
        expect(await store.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
      }
      return Number(await value(`SELECT pg_current_wal_insert_lsn() - '${before}'::pg_lsn`));
    };
    await until(async () => (await written()) === 0, { within: 15_000 });
  });

  it.each([1, 2])('that is executed late is not granted, permits: %i (rule 2)', async (permits) => {
    const claim = claimOf(`lease/late-${permits}`, { permits, patience: 150 });
    await server.pause();
    const since = performance.now();
    const answer = store.acquire(claim);
    await until(() => performance.now() - since > claim.patience + 50);
    server.resume();
    expect(await answer).toMatchObject({ granted: false, reason: 'unavailable' });
    expect(await store.inspect(claim.key)).toBeNull();
  });

  it('whose client is long gone is not granted late (rule 2)', async () => {
    const claim = claimOf('lease/gone', { patience: 150 });
    await server.pause();
    const since = performance.now();
    const answer = store.acquire(claim).catch((error: unknown) => error);
    // Past the time after which the connection is given up.
    await answer;
    await until(() => performance.now() - since > claim.patience);
    server.resume();
    await until(() =>
      store.inspect(claim.key).then(
        () => true,
        () => false,
      ),
    );
    expect(await store.inspect(claim.key)).toBeNull();
  });

  it('whose answer was lost is recognised when it comes again (rule 2)', async () => {
    const proxy = await startFaultProxy(server.port);
    const far = new PostgresLeaseStore(
      `postgres://postgres:${PASSWORD}@127.0.0.1:${proxy.port}/postgres`,
    );
    await far.open();
    const claim = claimOf('lease/lost-answer', { patience: 5_000 });
    proxy.swallowReplies();
    const lost = far.acquire(claim).catch((error: unknown) => error);
    const { holders } = await until(() => store.inspect(claim.key));
    proxy.heal();
    expect(await lost).toBeInstanceOf(Error);
    const again = await until(() => far.acquire(claim).catch(() => undefined));
    expect(again).toEqual({ granted: true, fence: holders[0]!.fence });
    await far.close();
    await proxy.close();
  });

  it('whose backend is terminated says that it does not know, and the next works', async () => {
    const held = await take(store, 'lease/terminated');
    await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nestjs-lease'",
    );
    await until(() => store.renew([held]).catch(() => undefined));
    expect(await store.renew([held])).toEqual(['renewed']);
  });
});

describe('A lease', () => {
  it('outlives a crash and restart of the server, under the same fence', async () => {
    const held = await take(store, 'lease/crash', { ttl: 60_000 });
    await server.restart();
    expect(await until(() => store.renew([held]).catch(() => undefined))).toEqual(['renewed']);
    expect(await store.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
    expect((await store.inspect(held.key))!.holders[0]!.fence).toBe(held.fence);
  });

  it('has a higher fence than the last though the clock of the server is behind (rule 8)', async () => {
    const ahead = (Date.now() + 3_600_000) * 1_000;
    const first = await take(store, 'lease/behind');
    await store.release(first, {});
    await admin.query(`UPDATE nestjs_lease SET fence = ${ahead} WHERE key = 'lease/behind'`);
    expect((await take(store, 'lease/behind')).fence).toBe(ahead + 1);
  });
});

describe('What nobody needs any more', () => {
  it('is swept away, and what is held or remembered is not', async () => {
    const brief = new PostgresLeaseStore(server.url, { table: 'brief', fenceRetention: 1_000 });
    const done = { once: 'tick', remember: 50 };
    await brief.release(await take(brief, 'lease/old', { ttl: 50 }), { done });
    await take(brief, 'lease/held', { ttl: 60_000 });
    const { sweep } = statementsFor(tableOf('brief'));
    await until(async () => {
      await admin.query(sweep, [1_000]);
      return (await value('SELECT count(*) FROM brief')) === '1';
    });
    expect(await value('SELECT key FROM brief')).toBe('lease/held');
    expect(await value('SELECT count(*) FROM brief_done')).toBe('0');
    await brief.close();
  });
});

describe('Who watches', () => {
  it('is told of a release by another process; nobody is told when nobody watches', async () => {
    const other = new PostgresLeaseStore(server.url);
    const spy = await admin.connect();
    const heard: unknown[] = [];
    spy.on('notification', (message) => heard.push(message));
    await spy.query('LISTEN nestjs_lease');
    await other.release(await take(other, 'lease/unwatched'), {});
    await spy.query('SELECT 1');
    expect(heard).toEqual([]);
    const held = await take(other, 'lease/watched', { ttl: 60_000 });
    let told = 0;
    const stop = await store.watch!(held.key, () => told++);
    await other.release(held, {});
    await until(() => told > 0);
    await until(async () => (await spy.query('SELECT 1')) && heard.length > 0);
    expect(JSON.stringify(heard)).not.toContain('watched');
    await stop();
    heard.length = 0;
    await other.release(await take(other, held.key), {});
    await spy.query('SELECT 1');
    expect(heard).toEqual([]);
    spy.release(true);
    await other.close();
  });

  it('is told that the connection broke, and hears again when it is back', async () => {
    const held = await take(store, 'lease/broken', { ttl: 60_000 });
    let told = 0;
    const stop = await store.watch!(held.key, () => told++);
    await server.restart();
    await until(() => told >= 2);
    const before = told;
    await until(() => store.release(held, {}).catch(() => undefined));
    await until(() => told > before);
    await stop();
  });

  it('listens on one connection, which is dropped some time after the last has stopped', async () => {
    const opened: Client[] = [];
    const connect = (): Client => {
      const client = new Client({ connectionString: server.url, application_name: 'listener' });
      opened.push(client);
      return client;
    };
    const listening = (): Promise<string> =>
      value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'listener'");
    const clock = new VirtualClock();
    const listener = new Listener(connect, clock);
    const stopFirst = await listener.watch('lease/idle-a', () => undefined);
    const stopSecond = await listener.watch('lease/idle-b', () => undefined);
    await stopFirst();
    await clock.advance(120_000);
    expect(await listening()).toBe('1');
    await stopSecond();
    await clock.advance(59_999);
    // Whoever comes before the minute is over finds it open, and ends the wait.
    await (
      await listener.watch('lease/idle-c', () => undefined)
    )();
    await clock.advance(59_999);
    expect(await listening()).toBe('1');
    expect(opened).toHaveLength(1);
    await clock.advance(1);
    await until(async () => (await listening()) === '0');
    expect(clock.timers).toBe(0);
    let told = 0;
    const stop = await listener.watch('lease/idle-d', () => told++);
    expect(opened).toHaveLength(2);
    await store.release(await take(store, 'lease/idle-d'), {});
    await until(() => told > 0);
    await stop();
    await listener.close();
    expect(clock.timers).toBe(0);
  });

  it('gets the key when it is released, long before it would ask again', async () => {
    const options = { namespace: 'lease', instance: 'test', ttl: 30_000, wait: 20_000 };
    const engines = [store, new PostgresLeaseStore(server.url)].map(
      (one) => [one, new LeaseEngine({ store: one, ...options })] as const,
    );
    const first = await engines[0]![1].acquire('handed');
    const second = engines[1]![1].acquire('handed');
    await until(
      async () =>
        (await value(
          "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'",
        )) === '1',
    );
    await first.release();
    await (await second).release();
    for (const [, engine] of engines) await engine.close(0, 0);
    await engines[1]![0].close();
  });
});
