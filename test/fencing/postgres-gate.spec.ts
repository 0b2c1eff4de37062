import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool, type PoolClient } from 'pg';
import { StaleFenceException, type Admitted } from 'nestjs-lease';
import { PostgresFenceGate, postgresFenceSql } from 'nestjs-lease/postgres';
import { GATE_NOT_COMMITTED } from '../../lib/lease.messages.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';
import { aFence, aResource, describeFenceGate } from './gate-suite.js';

let server: PostgresServer;
let pool: Pool;
let gate: PostgresFenceGate;

beforeAll(async () => {
  server = await startPostgres();
  pool = new Pool({ connectionString: server.url, max: 20 });
  gate = new PostgresFenceGate({ pool });
  await pool.query('CREATE TABLE writes (resource text, by text)');
}, 30_000);

afterAll(async () => {
  await pool.end();
  await server.stop();
});

describeFenceGate('PostgreSQL', () => ({ gate, another: () => new PostgresFenceGate({ pool }) }));

/** A connection in a transaction of its own. */
async function begin(isolation = 'READ COMMITTED'): Promise<PoolClient> {
  const client = await pool.connect();
  await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
  return client;
}

async function end(client: PoolClient, how: 'COMMIT' | 'ROLLBACK'): Promise<string> {
  const { command } = await client.query(how);
  client.release();
  return command;
}

const waitsForALock = async (): Promise<boolean> => {
  const { rows } = await pool.query(
    `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH %'`,
  );
  return rows.length > 0;
};

describe('in a transaction of the user', () => {
  it('an older owner that comes while a newer one has not committed waits, and is refused', async () => {
    const resource = aResource();
    const fence = aFence();
    const newer = await begin();
    await gate.admitIn(newer, resource, fence + 1);
    const older = await begin();
    const refused = gate.admitIn(older, resource, fence).catch((error: unknown) => error);
    await until(waitsForALock, { what: 'the older owner waits' });
    await end(newer, 'COMMIT');
    expect(await refused).toMatchObject({ code: 'STALE_FENCE', highest: fence + 1 });
    await end(older, 'ROLLBACK');
  });

  it('a newer owner waits until the older one, which was admitted before it, has committed', async () => {
    const resource = aResource();
    const fence = aFence();
    const older = await begin();
    await gate.admitIn(older, resource, fence);
    const newer = await begin();
    let isAdmitted = false;
    const admitted = gate.admitIn(newer, resource, fence + 1).then(() => (isAdmitted = true));
    await until(waitsForALock, { what: 'the newer owner waits' });
    expect(isAdmitted).toBe(false);
    await older.query(`INSERT INTO writes VALUES ($1, 'older')`, [resource]);
    await end(older, 'COMMIT');
    await admitted;
    await end(newer, 'COMMIT');
  });

  it('a rollback forgets the mark', async () => {
    const resource = aResource();
    const fence = aFence();
    await gate.admit(resource, fence);
    const client = await begin();
    await gate.admitIn(client, resource, fence + 10);
    await end(client, 'ROLLBACK');
    await expect(gate.admit(resource, fence + 1)).resolves.toBeUndefined();
  });

  it('a stale owner that does not heed the exception commits nothing', async () => {
    const resource = aResource();
    const fence = aFence();
    await gate.admit(resource, fence);
    const client = await begin();
    await client.query(`INSERT INTO writes VALUES ($1, 'before')`, [resource]);
    await gate.admitIn(client, resource, fence - 1).catch(() => undefined);
    await client
      .query(`INSERT INTO writes VALUES ($1, 'after')`, [resource])
      .catch(() => undefined);
    expect(await end(client, 'COMMIT')).toBe('ROLLBACK');
    const { rows } = await pool.query('SELECT by FROM writes WHERE resource = $1', [resource]);
    expect(rows).toEqual([]);
  });

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'under %s a stale owner does not commit either',
    async (isolation) => {
      const resource = aResource();
      const fence = aFence();
      await gate.admit(resource, fence);
      const older = await begin(isolation);
      // The moment from which it sees nothing new.
      await older.query('SELECT 1 FROM writes');
      await gate.admit(resource, fence + 1);
      await expect(gate.admitIn(older, resource, fence)).rejects.toBeInstanceOf(Error);
      await older
        .query(`INSERT INTO writes VALUES ($1, 'older')`, [resource])
        .catch(() => undefined);
      expect(await end(older, 'COMMIT')).toBe('ROLLBACK');
    },
  );

  it('a hundred owners in a random order: who commits later never has a lower fence', async () => {
    const resource = aResource();
    const fence = aFence();
    await pool.query('CREATE TABLE log (at serial, fence bigint)');
    const order = Array.from({ length: 100 }, (_, i) => i).toSorted(() => Math.random() - 0.5);
    let refused = 0;
    await Promise.all(
      order.map(async (i) => {
        try {
          await gate.transaction(
            resource,
            // The number is drawn under the lock of the mark, so it is the order of the commits.
            (client) => client.query('INSERT INTO log (fence) VALUES ($1)', [fence + i]),
            fence + i,
          );
        } catch (error) {
          expect(error).toBeInstanceOf(StaleFenceException);
          refused++;
        }
      }),
    );
    const { rows } = await pool.query<{ fence: string }>('SELECT fence FROM log ORDER BY at');
    const written = rows.map((row) => Number(row.fence));
    expect(written).toEqual(written.toSorted((a, b) => a - b));
    expect(written.at(-1)).toBe(fence + 99);
    expect(written.length + refused).toBe(100);
  });

  it('what is called outside of one is an error that says so', async () => {
    await expect(gate.admitIn(pool, aResource(), aFence())).rejects.toThrow(
      'outside of a transaction',
    );
    const client = await pool.connect();
    await expect(gate.admitIn(client, aResource(), aFence())).rejects.toThrow(
      'outside of a transaction',
    );
    client.release();
  });

  it('whatever protocol it came by: in the extended one the clock passes within a statement', async () => {
    const extended = (client: { query: Pool['query'] }) => (text: string) =>
      client.query({ text, queryMode: 'extended' } as never) as Promise<unknown>;
    await expect(gate.admitIn(extended(pool), aResource(), aFence())).rejects.toThrow(
      'outside of a transaction',
    );
    const client = await begin();
    await gate.admitIn(extended(client), aResource(), aFence());
    expect(await end(client, 'COMMIT')).toBe('COMMIT');
  });

  it('says what is no transaction', async () => {
    for (const bad of [undefined, null, 7, 'BEGIN', {}]) {
      await expect(gate.admitIn(bad as never, aResource(), aFence())).rejects.toThrow(
        'for a transaction',
      );
    }
  });
});

it('a savepoint that is rolled back takes the admission in it along', async () => {
  const resource = aResource();
  const fence = aFence();
  const client = await begin();
  await client.query('SAVEPOINT inner_one');
  await gate.admitIn(client, resource, fence + 1);
  await client.query('ROLLBACK TO SAVEPOINT inner_one');
  await gate.admitIn(client, resource, fence);
  await end(client, 'COMMIT');
  await expect(gate.admit(resource, fence - 1)).rejects.toMatchObject({ highest: fence });
});

describe('transaction()', () => {
  it('commits what was written under the fence, through a client that is known to be admitted', async () => {
    const resource = aResource();
    const write = (client: Admitted<PoolClient>, by: string): Promise<unknown> =>
      client.query('INSERT INTO writes VALUES ($1, $2)', [resource, by]);
    await gate.transaction(resource, (client) => write(client, 'owner'), aFence());
    const { rows } = await pool.query('SELECT by FROM writes WHERE resource = $1', [resource]);
    expect(rows).toEqual([{ by: 'owner' }]);
  });

  it('passes the error of the work on as it is, and rolls back the mark with it', async () => {
    const resource = aResource();
    const fence = aFence();
    const own = new Error('of the work');
    await expect(gate.transaction(resource, () => Promise.reject(own), fence + 9)).rejects.toBe(
      own,
    );
    await gate.admit(resource, fence);
    expect(pool.waitingCount).toBe(0);
  });

  it('that PostgreSQL rolled back is not reported as committed', async () => {
    const resource = aResource();
    const heedless = gate.transaction(
      resource,
      (client) => client.query('SELECT 1 / 0').catch(() => undefined),
      aFence(),
    );
    await expect(heedless).rejects.toThrow(GATE_NOT_COMMITTED(resource));
  });
});

describe('its table', () => {
  it('is created by many at once', async () => {
    const gates = Array.from(
      { length: 10 },
      () => new PostgresFenceGate({ pool, table: 'many_at_once' }),
    );
    await Promise.all(
      gates.map((each) => each.admit('x', aFence() + 1_000_000)).map((p) => p.catch(() => {})),
    );
    await expect(gates[0]!.admit('x', aFence() + 9_000_000)).resolves.toBeUndefined();
  });

  it('is created though transactions that wait for it have every connection of the pool', async () => {
    const small = new Pool({ connectionString: server.url, max: 2 });
    const first = new PostgresFenceGate({ pool: small, table: 'first_use' });
    const fence = aFence();
    await Promise.all(
      ['a', 'b'].map((resource) => first.transaction(resource, async () => {}, fence)),
    );
    const { rows } = await pool.query('SELECT resource FROM first_use ORDER BY resource');
    expect(rows).toEqual([{ resource: 'a' }, { resource: 'b' }]);
    await small.end();
  });

  it('is there after the transaction in which it was first used was rolled back', async () => {
    const rolledBack = new PostgresFenceGate({ pool, table: 'rolled_back' });
    const client = await begin();
    await rolledBack.admitIn(client, 'x', aFence());
    await end(client, 'ROLLBACK');
    await expect(rolledBack.admit('x', aFence())).resolves.toBeUndefined();
  });

  it('that is there is found by transactions that have all connections of the pool', async () => {
    await pool.query(postgresFenceSql('all_taken'));
    const small = new Pool({ connectionString: server.url, max: 1 });
    const client = await small.connect();
    await client.query('BEGIN');
    await new PostgresFenceGate({ pool: small, table: 'all_taken' }).admitIn(client, 'x', aFence());
    await client.query('COMMIT');
    client.release();
    await small.end();
  });

  it('that is missing is named, with what to do', async () => {
    const without = new PostgresFenceGate({ table: 'not_there' });
    const client = await begin();
    await expect(without.admitIn(client, 'x', aFence())).rejects.toThrow(
      `Run the SQL of postgresFenceSql('not_there')`,
    );
    await end(client, 'ROLLBACK');
  });

  it('may come from a migration, in a schema', async () => {
    await pool.query('CREATE SCHEMA app');
    await pool.query(postgresFenceSql('app.marks'));
    await pool.query(postgresFenceSql('app.marks'));
    const migrated = new PostgresFenceGate({ table: 'app.marks' });
    const client = await begin();
    await migrated.admitIn(client, 'x', aFence());
    expect(await end(client, 'COMMIT')).toBe('COMMIT');
  });

  it('that may not be written to is named', async () => {
    await pool.query(
      `CREATE ROLE reader LOGIN PASSWORD 'r'; GRANT SELECT ON nestjs_fence TO reader`,
    );
    const readers = new Pool({ connectionString: server.urlOf('reader', 'r') });
    const forReaders = new PostgresFenceGate({ pool: readers });
    await expect(forReaders.admit('x', aFence())).rejects.toThrow(
      'needs SELECT, INSERT, UPDATE and DELETE',
    );
    await readers.end();
  });

  it('forgets what nobody has written to for the retention, and nothing else', async () => {
    const short = new PostgresFenceGate({ pool, table: 'short', retention: '2d' });
    const fence = aFence();
    await short.admit('old', fence);
    await short.admit('new', fence);
    await pool.query(`UPDATE short SET forget_at = 1 WHERE resource = 'old'`);
    expect(await short.retire()).toBe(1);
    expect((await pool.query('SELECT resource FROM short')).rows).toEqual([{ resource: 'new' }]);
    const client = await begin();
    expect(await new PostgresFenceGate({ table: 'short' }).retire(client)).toBe(0);
    await end(client, 'COMMIT');
  });

  it('a mark that is retired while an owner asks for it lets nobody in who is too old to begin one', async () => {
    const short = new PostgresFenceGate({ pool, table: 'retiring', retention: '2d' });
    const day = 86_400_000_000;
    const mark = aFence() - 3 * day;
    await pool.query(postgresFenceSql('retiring'));
    await pool.query(`INSERT INTO retiring VALUES ('x', ${mark}, 1)`);
    const sweeper = await begin();
    expect(await short.retire(sweeper)).toBe(1);
    const older = await begin();
    // Below the mark there is nothing to wait for.
    await expect(short.admitIn(older, 'x', mark - 1)).rejects.toMatchObject({ highest: mark });
    await older.query('ROLLBACK; BEGIN');
    const refused = short.admitIn(older, 'x', mark + 1).catch((error: unknown) => error);
    await until(waitsForALock, { what: 'the owner waits for the mark' });
    await end(sweeper, 'COMMIT');
    expect(await refused).toBeInstanceOf(StaleFenceException);
    await end(older, 'ROLLBACK');
  });

  it.each(['', 'a.b.c', 'x; DROP TABLE writes', 7, null])('%p is no name of one', (table) => {
    expect(() => new PostgresFenceGate({ table: table as string })).toThrow('"table"');
  });

  it('a misspelt option and a pool that is none are named', () => {
    expect(() => new PostgresFenceGate({ tabel: 'x' } as never)).toThrow(
      'There is no option "tabel"',
    );
    expect(() => new PostgresFenceGate({ pool: {} as never })).toThrow('"pool"');
  });
});

it('without a pool, what needs one says so', async () => {
  const without = new PostgresFenceGate();
  await expect(without.admit('x', aFence())).rejects.toThrow(
    'admit() of PostgresFenceGate needs a pool',
  );
  await expect(without.transaction('x', async () => {}, aFence())).rejects.toThrow(
    'transaction() of',
  );
});

it('sql() is a statement that fails by itself, for whatever else sends it', async () => {
  const resource = aResource(`o'brien`);
  const fence = aFence();
  await pool.query(gate.sql(resource, fence));
  await expect(pool.query(gate.sql(resource, fence - 1))).rejects.toThrow(
    'nestjs-lease: stale fence',
  );
  // Two names that would be one on the wire.
  for (const bad of ['\ud800', '\udfff']) {
    expect(() => gate.sql(bad, fence)).toThrow('is not well-formed Unicode');
  }
});
