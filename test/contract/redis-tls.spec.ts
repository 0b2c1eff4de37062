import { readFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { connectionFor, hangUp } from '../../lib/stores/redis/redis-connection.js';
import { makeCertificates } from '../support/certificates.js';
import { take } from '../support/claims.js';
import { freePort, startRedis, type RedisServer } from '../support/redis-server.js';

/** For tests alone: a certificate of localhost, signed by itself. */
const fixture = (name: string): string =>
  readFileSync(new URL(`../support/tls/${name}.pem`, import.meta.url), 'utf8');

describe('A Redis behind TLS', () => {
  const ca = fixture('certificate');
  let server: RedisServer;
  let tls: Server;
  let port: number;

  beforeAll(async () => {
    server = await startRedis();
    tls = createServer({ key: fixture('key'), cert: ca }, (secure) => {
      const plain = connect(server.port, '127.0.0.1');
      secure.pipe(plain).pipe(secure);
      for (const socket of [secure, plain]) {
        socket.on('error', () => {});
        socket.on('close', () => (secure.destroy(), plain.destroy()));
      }
    });
    tls.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    ({ port } = tls.address() as AddressInfo);
  });
  afterAll(async () => {
    tls.close();
    await server.stop();
  });

  it('is reached with the TLS settings of the user’s client, which is left open', async () => {
    const client = new Redis({ host: '127.0.0.1', port, tls: { ca } });
    const store = new RedisLeaseStore(client);
    expect(await store.release(await take(store, 'lease/secure'), {})).toBe(true);
    await store.close();
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });

  it('is reached with TLS settings in the options', async () => {
    const store = new RedisLeaseStore({ host: '127.0.0.1', port, tls: { ca } });
    expect(await store.release(await take(store, 'lease/secure'), {})).toBe(true);
    await store.close();
  });

  it('is not trusted when its certificate is not: a rediss:// URL is refused as any other trouble', async () => {
    const store = new RedisLeaseStore(`rediss://127.0.0.1:${port}`);
    await expect(store.open()).rejects.toMatchObject({
      cause: expect.objectContaining({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
    });
    await store.close();
  });
});

describe('A Redis that itself speaks TLS', () => {
  it('may be given up at any moment of a handshake that it will fail: nothing escapes (rule 12)', async () => {
    const certificates = makeCertificates();
    const files = [
      '--tls-cert-file',
      certificates.file('cert'),
      '--tls-key-file',
      certificates.file('key'),
    ];
    const port = await freePort(false);
    const server = await startRedis({
      args: ['--tls-port', `${port}`, '--tls-ca-cert-file', certificates.file('ca'), ...files],
    });
    for (let tries = 0; tries < 200; tries++) {
      const client = connectionFor({ host: '127.0.0.1', port, tls: {} });
      const connecting = client.connect().catch(() => {});
      await setTimeout(tries % 8);
      // What escapes fails the test: see test/support/fail-on-unhandled.ts.
      await hangUp(client);
      await connecting;
    }
    await server.stop();
    certificates.remove();
  });
});
