import { Redis } from 'ioredis';
import { startRedis, type RedisServer } from './redis-server.js';

/** So many servers that know nothing of each other. */
export function startNodes(count: number): Promise<RedisServer[]> {
  return Promise.all(Array.from({ length: count }, () => startRedis()));
}

export const urlsOf = (servers: readonly { readonly url: string }[]): string[] =>
  servers.map(({ url }) => url);

/** Asks a server by a connection of its own. */
export async function ask<T>(
  server: { readonly url: string },
  question: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis(server.url);
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

/** As if they had been in use for long: their quarantine is over. */
export async function admitAll(servers: readonly RedisServer[], prefix = ''): Promise<void> {
  const admit = async (client: Redis): Promise<unknown> => {
    const run = /run_id:(\w+)/.exec((await client.info('server')) as string)![1]!;
    return client.hset(`${prefix}nestjs-lease:redlock`, { run, since: 1, admitted: 1 });
  };
  await Promise.all(servers.map((server) => ask(server, admit)));
}
