import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { claimOf, take } from '../support/claims.js';
import { startFarPostgres, type FarPostgres } from '../support/far-postgres.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import { PASSWORD, startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { until } from '../support/until.js';
import { Witness } from '../support/witness.js';

/** Above the least that the server waits for, so that the ttl decides. */
const TTL = 5_000;

/** Of the session lock that nobody holds any more. */
const takenOver = (store: PostgresAdvisoryLeaseStore, key: string) =>
  until(
    async () => {
      const answer = await store.acquire(claimOf(key)).catch(() => undefined);
      return answer?.granted ? answer : undefined;
    },
    { within: 40_000 },
  );

describe('A holder of session locks that vanishes without a word', () => {
  let far: FarPostgres;
  let other: PostgresAdvisoryLeaseStore;
  let witness: Witness;

  beforeEach(async () => {
    far = await startFarPostgres();
    other = new PostgresAdvisoryLeaseStore(far.otherUrl);
    const store = new PostgresAdvisoryLeaseStore(far.url);
    // Connected, the table there: a short claim has no time for that.
    await until(() =>
      store.open().then(
        () => true,
        () => false,
      ),
    );
    witness = new Witness(store, TTL);
  });
  afterEach(async () => {
    // The store first: its engine would wait for answers that never come.
    await witness.store.close();
    await witness.close();
    await other.close();
    await far.close();
  });

  it('has lost them by the time that the server frees them (rules 3 and 4)', async () => {
    // A lease that is shorter than what the session was made for comes first: it does not decide.
    await witness.hold('short', { ttl: 2_000 });
    const lease = await witness.hold('vanished');
    far.vanish();
    lease.signal.addEventListener('abort', () => far.giveUp());
    const successor = await takenOver(other, 'lease/vanished');
    expect(lease.isHeld).toBe(false);
    expect(successor.fence).toBeGreaterThan(lease.fence);
  }, 60_000);
});

describe('A holder of session locks that does not hear of the server’s end', () => {
  let server: PostgresServer;
  let proxy: FaultProxy;
  let other: PostgresAdvisoryLeaseStore;
  let witness: Witness;

  beforeEach(async () => {
    server = await startPostgres();
    proxy = await startFaultProxy(server.port);
    const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${proxy.port}/postgres`;
    witness = new Witness(new PostgresAdvisoryLeaseStore(url), 4_000);
    other = new PostgresAdvisoryLeaseStore(server.url);
  });
  afterEach(async () => {
    await witness.close();
    await other.close();
    await proxy.close();
    await server.stop();
  });

  it('has lost them by the time that the server, started anew, grants them (rule 3)', async () => {
    const released = await witness.hold('released');
    const lease = await witness.hold('unheard');
    await released.release();
    proxy.stall();
    await server.restart();
    await take(other, 'lease/released');
    const refused = await other.acquire(claimOf('lease/unheard'));
    expect(refused).toMatchObject({ granted: false, reason: 'held' });
    expect(await other.inspect('lease/unheard')).toMatchObject({
      holders: [{ fence: lease.fence }],
    });
    const successor = await takenOver(other, 'lease/unheard');
    expect(lease.isHeld).toBe(false);
    expect(successor.fence).toBeGreaterThan(lease.fence);
  });
});
