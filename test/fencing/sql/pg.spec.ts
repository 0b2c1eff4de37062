import { Pool, type PoolClient } from 'pg';
import { describeSqlLibrary } from './sql-library.js';

describeSqlLibrary<PoolClient>('pg', (url) => {
  const pool = new Pool({ connectionString: url });
  return {
    outside: pool,
    async transaction(work) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const result = await work(client);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    enter: (client, month, fence) =>
      client.query('INSERT INTO entries (month, fence) VALUES ($1, $2)', [month, fence]),
    close: async (client, month, column) => {
      const { rowCount } = await client.query(
        `UPDATE ledger SET closed = true, ${column.set} WHERE month = $1 AND ${column.where}`,
        [month],
      );
      return rowCount;
    },
    end: () => pool.end(),
  };
});
