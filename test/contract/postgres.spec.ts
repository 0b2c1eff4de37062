import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { Pool } from 'pg';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';

let server: PostgresServer;
let pool: Pool;
beforeAll(async () => {
  server = await startPostgres();
  pool = new Pool({ connectionString: server.url, max: 5 });
  pool.on('error', () => undefined);
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

describeLeaseStore('PostgresLeaseStore', () => new PostgresLeaseStore(server.url), {
  describe,
  it,
  loseData: () => server.restartEmpty(),
  freeze: () => server.pause(),
  thaw: async () => server.resume(),
});

describeLeaseStore(
  'PostgresLeaseStore on a pool of the user’s',
  () => new PostgresLeaseStore(pool),
  {
    describe,
    it,
  },
);

// The shortest retention: what outlives it must do so by its own ttl.
describeLeaseStore(
  'PostgresLeaseStore with a table in a schema, without listening, with a short retention',
  async () => {
    await pool.query('CREATE SCHEMA IF NOT EXISTS "Select"');
    return new PostgresLeaseStore(server.url, {
      table: 'Select.order',
      listen: false,
      fenceRetention: 1_000,
    });
  },
  { describe, it },
);

describeLeaseStore('PostgresAdvisoryLeaseStore', () => new PostgresAdvisoryLeaseStore(server.url), {
  describe,
  it,
  loseData: () => server.restartEmpty(),
  freeze: () => server.pause(),
  thaw: async () => server.resume(),
});
