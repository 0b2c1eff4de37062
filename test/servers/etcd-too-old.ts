import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ETCD_BAD_ANSWER } from '../../lib/lease.messages.js';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import { claimOf } from '../support/claims.js';
import { realProcess } from '../support/real-process.js';
import { until } from '../support/until.js';

/**
 * For an etcd that is older than 3.4, which `npm test` has none of: run by `npm run servers`. Such a one does not know what
 * the tests tell others at their start, so it is started here.
 */
describe('An etcd that is too old', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-lease-etcd-'));
  const stores: EtcdLeaseStore[] = [];
  const killOnExit = (): void => void server?.kill('SIGKILL');
  let server: ChildProcess | undefined;
  let host: string;

  beforeAll(async () => {
    const [client, peer] = [await freePort(), await freePort()];
    host = `127.0.0.1:${client}`;
    const urls = { client: `http://${host}`, peer: `http://127.0.0.1:${peer}` };
    const flags = {
      name: 'old',
      'data-dir': join(folder, 'data'),
      'listen-client-urls': urls.client,
      'advertise-client-urls': urls.client,
      'listen-peer-urls': urls.peer,
      'initial-advertise-peer-urls': urls.peer,
      'initial-cluster': `old=${urls.peer}`,
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    server = spawn(process.env['ETCD_SERVER']!, args, { stdio: 'ignore' });
    realProcess.on('exit', killOnExit);
    const isUp = (): Promise<boolean> =>
      fetch(`${urls.client}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(isUp, { within: 15_000, what: 'etcd answers' });
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
  });
  afterAll(async () => {
    const exit = once(server!, 'exit');
    server!.kill('SIGKILL');
    await exit;
    realProcess.off('exit', killOnExit);
    rmSync(folder, { recursive: true, force: true });
  });

  function storeOf(): EtcdLeaseStore {
    const store = new EtcdLeaseStore({ endpoints: `http://${host}` });
    stores.push(store);
    return store;
  }

  it('is named at the start', async () => {
    await expect(storeOf().open()).rejects.toThrow(ETCD_BAD_ANSWER(host, 404));
  });

  it('is named by a claim', async () => {
    await expect(storeOf().acquire(claimOf('lease/old'))).rejects.toThrow(
      ETCD_BAD_ANSWER(host, 404),
    );
  });
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
