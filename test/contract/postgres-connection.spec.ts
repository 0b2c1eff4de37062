import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import {
  BAD_OPTION,
  BAD_POSTGRES_CONNECTION,
  BAD_POSTGRES_TABLE,
  BAD_POSTGRES_URL,
  NO_POSTGRES,
  POSTGRES_NO_RIGHT,
  POSTGRES_NO_TABLE,
  POSTGRES_NOT_FOR_THREAD,
  POSTGRES_READ_ONLY,
  POSTGRES_SAID,
  UNKNOWN_OPTION,
} from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { LeaseStore } from '../../lib/stores/lease-store.js';
import { postgresLeaseSql } from '../../lib/stores/postgres/migration.js';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { PASSWORD, startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';

let server: PostgresServer;
let admin: Pool;
const stores: LeaseStore[] = [];

beforeAll(async () => {
  server = await startPostgres();
  admin = new Pool({ connectionString: server.url });
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

type Kind = typeof PostgresLeaseStore | typeof PostgresAdvisoryLeaseStore;
const KINDS: [name: string, kind: Kind][] = [
  ['PostgresLeaseStore', PostgresLeaseStore],
  ['PostgresAdvisoryLeaseStore', PostgresAdvisoryLeaseStore],
];

function opened<Store extends LeaseStore>(store: Store): Store {
  stores.push(store);
  return store;
}

const storeOf = (...args: ConstructorParameters<typeof PostgresLeaseStore>): PostgresLeaseStore =>
  opened(new PostgresLeaseStore(...args));

const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => expect(value).toBe('an error'),
    (error: unknown) => error,
  );

const connections = async (name = 'nestjs-lease'): Promise<number> => {
  const sql = 'SELECT FROM pg_stat_activity WHERE application_name = $1';
  return (await admin.query(sql, [name])).rowCount!;
};

describe('A PostgreSQL store connects', () => {
  it('to a URL, with options, and by a pool of the user’s', async () => {
    const options = { host: '127.0.0.1', port: server.port, user: 'postgres', password: PASSWORD };
    await take(storeOf(server.url), 'lease/url');
    await take(storeOf({ ...options, database: 'postgres' }), 'lease/options');
    await take(storeOf(admin), 'lease/pool');
    const rows = await admin.query('SELECT key FROM nestjs_lease ORDER BY key');
    expect(rows.rows).toEqual([
      { key: 'lease/options' },
      { key: 'lease/pool' },
      { key: 'lease/url' },
    ]);
  });

  it('with a few connections, however many ask', async () => {
    const store = storeOf(server.url);
    // Other keys at a second try, and patience for a slow machine: the last of them waits for all the others.
    const key = `lease/${randomUUID()}`;
    const all = Array.from({ length: 200 }, (_, i) =>
      take(store, `${key}-${i}`, { patience: 15_000 }),
    );
    await Promise.all(all);
    expect(await connections()).toBeLessThanOrEqual(4);
  });

  it('no more after it is closed, and leaves no connection behind', async () => {
    const store = storeOf(server.url);
    await take(store, 'lease/closed');
    const stop = await store.watch!('lease/closed', () => undefined);
    await store.close();
    await stop();
    const closed = await errorOf(store.acquire(claimOf('lease/closed')));
    expect(closed).toMatchObject({ message: NO_POSTGRES() });
    await expect(store.watch!('lease/closed', () => undefined)).rejects.toThrow(NO_POSTGRES());
    await until(async () => (await connections()) === 0);
  });

  it('by a pool that it never closes, and leaves as it was', async () => {
    const pool = new Pool({ connectionString: server.url });
    pool.on('error', () => undefined);
    const store = storeOf(pool);
    await take(store, 'lease/theirs');
    await store.close();
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(pool.listenerCount('error')).toBe(1);
    await pool.end();
  });

  it('by a pool that reads numbers, booleans and times in a way of its own', async () => {
    const inOwnWay = (oid: number) => (text: string) => (oid === 25 ? text : { theirs: text });
    const types = { getTypeParser: inOwnWay } as never;
    const pool = new Pool({ connectionString: server.url, types });
    const store = storeOf(pool);
    const held = await take(store, 'lease/typed', { permits: 2 });
    expect(await store.renew([held])).toEqual(['renewed']);
    expect((await store.inspect(held.key))?.holders).toMatchObject([{ fence: held.fence }]);
    expect(await store.acquire(claimOf(held.key))).toMatchObject({ reason: 'held' });
    expect(await store.release(held, {})).toBe(true);
    await pool.end();
  });

  it('by a pool that isolates its transactions more than is needed', async () => {
    const pool = new Pool({
      connectionString: server.url,
      options: '-c default_transaction_isolation=serializable -c TimeZone=Asia/Tokyo',
    });
    const store = storeOf(pool);
    const claims = Array.from({ length: 40 }, () =>
      store.acquire(claimOf('lease/isolated', { permits: 2, patience: 10_000 })),
    );
    const granted = (await Promise.all(claims)).filter((answer) => answer.granted);
    expect(granted).toHaveLength(2);
    await pool.end();
  });
});

describe.each(KINDS)('%s that is given nonsense', (name, Store) => {
  it.each([[undefined], [null], [42], [true], [[]], [() => 'postgres://localhost']])(
    'says what it needs: %p',
    (nonsense) => {
      const construct = (): unknown => new Store(nonsense as never);
      expect(construct).toThrow(TypeError);
      expect(construct).toThrow(BAD_POSTGRES_CONNECTION(name, nonsense));
    },
  );

  it.each([
    [''],
    ['localhost'],
    ['http://user:hunter2@localhost'],
    ['postgres//:hunter2@localhost'],
    ['postgres://:hunter2@localhost:99999'],
    [{ connectionString: 'mysql://user:hunter2@localhost' }],
  ])('says what a URL is, and repeats no password: %p (rule 15)', (url) => {
    const construct = (): unknown => new Store(url);
    expect(construct).toThrow(TypeError);
    expect(construct).toThrow(BAD_POSTGRES_URL(name));
    expect(BAD_POSTGRES_URL(name)).not.toContain('hunter2');
  });

  it.each([
    [''],
    ['a b'],
    ['a.b.c'],
    ['.a'],
    ['a"; DROP TABLE b; --'],
    ['1a'],
    ['x'.repeat(51)],
    [7],
  ])('names an impossible table: %p', (table) => {
    const construct = (): unknown => new Store(server.url, { table: table as string });
    expect(construct).toThrow(BAD_POSTGRES_TABLE(table));
  });

  it('names an option that it does not have, and one that is no boolean', () => {
    const misspelt = { tabel: 'x' } as object;
    expect(() => new Store(server.url, misspelt)).toThrow(/There is no option "tabel"/);
    expect(UNKNOWN_OPTION('tabel', ['table'])).toContain('"tabel"');
    const createTable = 'no' as unknown as boolean;
    expect(() => new Store(server.url, { createTable })).toThrow(
      BAD_OPTION('createTable', 'no', 'true or false'),
    );
  });

  it.each([['0s'], ['soon'], [-1]])('names an impossible fenceRetention: %p', (fenceRetention) => {
    const construct = (): unknown =>
      new Store(server.url, { fenceRetention: fenceRetention as '1s' });
    expect(construct).toThrow(/"fenceRetention"/);
  });
});

describe.each(KINDS)('Without a PostgreSQL to talk to, %s', (_, Store) => {
  const refusesThenWorks = async (store: LeaseStore, repair: () => Promise<unknown>) => {
    opened(store);
    const options = { store, namespace: 'lease', instance: 'test', ttl: 600, wait: 0 };
    const engine = new LeaseEngine(options);
    // As at boot: it cannot open, and goes on all the same.
    const closed = await errorOf(store.open!());
    const refusal = await engine.tryAcquire('boot').catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
    await repair();
    const lease = await until(() => engine.tryAcquire('boot').catch(() => null));
    await lease.release();
    await engine.close(0, 0);
    return { closed, refusal };
  };

  it('refuses as unavailable, and works when it is there (rule 9)', async () => {
    const own = await startPostgres();
    await own.kill();
    const { closed } = await refusesThenWorks(new Store(own.url), () => own.start());
    expect(closed).toMatchObject({ message: NO_POSTGRES() });
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await own.stop();
  });

  it('that lets it in, does too, and tells no password (rules 9 and 15)', async () => {
    await admin.query("DROP ROLE IF EXISTS late; CREATE ROLE late LOGIN PASSWORD 'other'");
    await admin.query(
      'DROP SCHEMA IF EXISTS late; CREATE SCHEMA late; GRANT ALL ON SCHEMA late TO PUBLIC',
    );
    const store = new Store(server.urlOf('late', 'hunter2'), { table: 'late.leases' });
    const { closed, refusal } = await refusesThenWorks(store, () =>
      admin.query("ALTER ROLE late PASSWORD 'hunter2'"),
    );
    const said = POSTGRES_SAID('password authentication failed for user "late"', '28P01');
    expect(closed).toMatchObject({ message: said });
    expect(inspect([closed, refusal], { depth: 10, showHidden: true })).not.toContain('hunter2');
    await admin.query('DROP SCHEMA late CASCADE; DROP ROLE late');
  });

  it('that has its database, does too', async () => {
    const store = new Store(server.urlOf('postgres', PASSWORD, 'later'));
    const { closed } = await refusesThenWorks(store, () => admin.query('CREATE DATABASE later'));
    expect(closed).toMatchObject({
      message: POSTGRES_SAID('database "later" does not exist', '3D000'),
    });
    await Promise.all(stores.splice(0).map((one) => one.close()));
    await admin.query('DROP DATABASE later');
  });

  it('a claim does not wait longer than it was to', async () => {
    const own = await startPostgres();
    await own.pause();
    const store = opened(new Store(own.url));
    const since = performance.now();
    const error = await errorOf(store.acquire(claimOf('lease/frozen', { patience: 200 })));
    expect(error).toMatchObject({ message: NO_POSTGRES() });
    // Far less than what a connection may take to be made.
    expect(performance.now() - since).toBeLessThan(1_500);
    own.resume();
    await until(() => take(store, 'lease/frozen').catch(() => undefined));
    await store.close();
    await own.stop();
  });
});

describe.each(KINDS)('The tables of %s', (_, Store) => {
  it('are created by the first of many processes that race to', async () => {
    for (let round = 0; round < 5; round++) {
      const table = `race_${round}_${Store === PostgresLeaseStore ? 'rows' : 'session'}`;
      const racing = Array.from({ length: 6 }, () => opened(new Store(server.url, { table })));
      const claims = racing.map((store) => store.acquire(claimOf(`lease/${table}`)));
      expect((await Promise.all(claims)).filter(({ granted }) => granted)).toHaveLength(1);
    }
  });

  it('are named when they are missing and not to be created', async () => {
    const store = opened(new Store(server.url, { table: 'public.nowhere', createTable: false }));
    const message = POSTGRES_NO_TABLE('public.nowhere');
    expect(await errorOf(store.open!())).toMatchObject({ message, code: '42P01' });
    expect(await errorOf(store.acquire(claimOf('lease/a')))).toMatchObject({ message });
  });

  it('in a schema that is missing are too', async () => {
    const store = opened(new Store(server.url, { table: 'elsewhere.leases' }));
    const message = POSTGRES_SAID('schema "elsewhere" does not exist', '3F000');
    expect(await errorOf(store.open!())).toMatchObject({ message });
  });

  it('that may not be used are, without an owner token (rule 15)', async () => {
    await take(opened(new Store(server.url, { table: 'mine' })), `lease/${Store.name}`);
    await admin.query("CREATE ROLE guest LOGIN PASSWORD 'guest'");
    const store = opened(new Store(server.urlOf('guest', 'guest'), { table: 'mine' }));
    const claim = claimOf('lease/guest');
    const error = await errorOf(store.acquire(claim));
    expect(error).toMatchObject({
      message: POSTGRES_NO_RIGHT('mine', 'permission denied for table mine'),
    });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(claim.token);
    await store.close();
    await admin.query('DROP TABLE mine, mine_done').catch(() => admin.query('DROP TABLE mine'));
    await admin.query('DROP ROLE guest');
  });
});

describe('A migration of the user’s', () => {
  it('creates all that is needed, for a user with no more rights than that', async () => {
    await admin.query('CREATE SCHEMA app');
    await admin.query(postgresLeaseSql('app.leases'));
    await admin.query(postgresLeaseSql('app.leases'));
    await admin.query("CREATE ROLE app LOGIN PASSWORD 'app'");
    await admin.query(
      'GRANT USAGE ON SCHEMA app TO app; GRANT SELECT, INSERT, UPDATE, DELETE ON app.leases, app.leases_done TO app',
    );
    const options = { table: 'app.leases', createTable: false };
    const store = storeOf(server.urlOf('app', 'app'), options);
    const held = await take(store, 'lease/app', { once: 'tick' });
    expect(await store.renew([held])).toEqual(['renewed']);
    await store.release(held, { done: { once: 'tick', remember: 1_000 } });
    await store.close();
    await admin.query('DROP SCHEMA app CASCADE; DROP ROLE app');
  });
});

describe('An error of PostgreSQL', () => {
  it('is told as what it is when the server is read-only (rule 9)', async () => {
    const store = storeOf(server.url, { table: 'readonly' });
    await take(store, 'lease/readonly');
    const replica = storeOf(
      { connectionString: server.url, options: '-c default_transaction_read_only=on' },
      { table: 'readonly' },
    );
    expect(await errorOf(replica.open())).toMatchObject({ message: POSTGRES_READ_ONLY() });
    expect(await errorOf(replica.acquire(claimOf('lease/other')))).toMatchObject({
      message: POSTGRES_READ_ONLY(),
      code: '25006',
    });
  });

  it('shows no owner token, though the server would tell its parameters (rule 15)', async () => {
    const store = storeOf({
      connectionString: server.url,
      options: '-c log_parameter_max_length_on_error=-1',
    });
    await store.open();
    const claim = claimOf('lease/told', { ttl: 1e17 });
    const held = claimOf('lease/told');
    const errors = [
      await errorOf(store.acquire(claim)),
      await errorOf(store.renew([{ ...held, ttl: 1e17 }])),
      await errorOf(store.release(held, { keepFor: 1e17 })),
    ];
    for (const error of errors) {
      expect(error).toMatchObject({ message: expect.stringContaining('out of range') });
      const shown = inspect(error, { depth: 10, showHidden: true });
      expect(shown).not.toContain(claim.token);
      expect(shown).not.toContain(held.token);
    }
  });
});

describe('For a thread of its own, a PostgreSQL store', () => {
  it.each([
    ['of a URL', () => server.url],
    ['of options', () => ({ connectionString: server.url, ssl: false })],
    ['of a pool', () => admin],
  ])('%s tells how it is made again', async (_, to) => {
    const store = storeOf(to(), { table: 'threaded' });
    const held = await take(store, `lease/thread-${_}`);
    const { export: name, args } = structuredClone(store.thread());
    expect(name).toBe('PostgresLeaseStore');
    const again = storeOf(...(args as ConstructorParameters<typeof PostgresLeaseStore>));
    expect(await again.renew([held])).toEqual(['renewed']);
  });

  it('names what cannot be sent there', () => {
    const store = storeOf({ connectionString: server.url, password: () => 'secret' });
    expect(() => store.thread()).toThrow(POSTGRES_NOT_FOR_THREAD('password'));
  });
});
