import type { Client } from 'pg';
import { POSTGRES_SILENT } from '../../lease.messages.js';
import { within, type Row } from './postgres-connection.js';

/**
 * Whether a pooler is in between: it gives a number of its own for the process that answers. What belongs to a session
 * is not safe there. It may reach another session with every statement, or stay behind for the next client.
 */
export async function isPooled(client: Client, silence: number): Promise<boolean> {
  const asked = client.query('SELECT pg_backend_pid()::text AS pid');
  const { rows } = await within(silence, asked, () => new Error(POSTGRES_SILENT(silence)));
  const { processID } = client as Client & { processID?: number };
  return (rows as Row[])[0]?.['pid'] !== String(processID);
}
