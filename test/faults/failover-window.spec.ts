import { afterEach, describe, expect, it } from '@jest/globals';
import { TOO_FEW_COPIES } from '../../lib/lease.messages.js';
import type { Lease } from '../../lib/lease/lease.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import type { RedisLeaseStoreOptions } from '../../lib/stores/redis/redis-rules.js';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.js';
import { adminOf, infoOf, REPLICATES_AT_ONCE, startReplica } from '../support/redis-sentinel.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { allTold, nobodyTold, Witness } from '../support/witness.js';

/** A third of it is time enough for another to take the key before the next renewal. */
const TTL = 6_000;
/** Of those who are waited for until they have ended. */
const SHORT = 2_500;
/** After two seconds at most a primary knows that its replica is gone. */
const NEEDS_REPLICA = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '1'];

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A primary and its replica, and the name by which processes know where the primary is. */
class Pair {
  private constructor(
    readonly primary: RedisServer,
    readonly replica: RedisServer,
    /** From the primary to the replica. */
    private readonly link: FaultProxy,
  ) {}

  static async start(args: readonly string[] = []): Promise<Pair> {
    const primary = await startRedis({ args: [...REPLICATES_AT_ONCE, ...args] });
    const link = await startFaultProxy(primary.port);
    const replica = await startReplica(primary, ['--replicaof', `127.0.0.1 ${link.port}`, ...args]);
    closing.push(() => Promise.all([primary.stop(), replica.stop(), link.close()]));
    return new Pair(primary, replica, link);
  }

  /** What the primary is told from now on the replica is not. */
  part(): void {
    this.link.stall();
  }

  /** As Sentinel, or whoever is in charge of failovers, does. */
  async promote(): Promise<void> {
    const admin = adminOf(this.replica);
    await admin.config('SET', 'min-replicas-to-write', '0');
    await admin.replicaof('NO', 'ONE');
    admin.disconnect();
  }

  /** As it is done with a primary that was replaced, once it can be reached. */
  async demote(): Promise<void> {
    const admin = adminOf(this.primary);
    await admin.replicaof('127.0.0.1', this.replica.port);
    admin.disconnect();
  }
}

async function nameOf(server: RedisServer): Promise<FaultProxy> {
  const name = await startFaultProxy(server.port);
  closing.push(() => name.close());
  return name;
}

function processAt(
  { url }: { url: string },
  ttl = TTL,
  options: RedisLeaseStoreOptions = {},
): Witness {
  const witness = new Witness(new RedisLeaseStore(url, options), ttl);
  closing.push(() => witness.close());
  return witness;
}

const bothTrust = (one: Lease, other: Lease): boolean => one.isHeld && other.isHeld;

describe('The window of a failover', () => {
  it('in which a grant is lost that no replica has: two trust the key until the first renews, by a lower fence (rules 5 and 8)', async () => {
    const pair = await Pair.start();
    const name = await nameOf(pair.primary);
    const [one, other] = [processAt(name), processAt(name)];
    pair.part();
    const lost = await one.hold('window');
    await pair.primary.kill();
    await pair.promote();
    name.leadTo(pair.replica.port);
    name.reset();
    const next = await other.hold('window', { wait: TTL / 3 });
    expect(bothTrust(lost, next)).toBe(true);
    expect(next.fence).toBeGreaterThan(lost.fence);
    await until(() => one.isTold);
    // Not by its clock: by the answer to a renewal.
    expect(one.tellings).toEqual(allTold('taken'));
    expect(lost.isHeld).toBe(false);
    expect(next.isHeld).toBe(true);
    expect(other.tellings).toEqual(nobodyTold);
  });

  it('is closed by waitForReplicas: what no replica has is refused', async () => {
    const pair = await Pair.start();
    const name = await nameOf(pair.primary);
    const [one, other] = [
      processAt(name, TTL, { waitForReplicas: 1 }),
      // After the failover there is no replica to wait for.
      processAt(pair.replica),
    ];
    pair.part();
    await expect(one.hold('window')).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
      cause: expect.objectContaining({ message: TOO_FEW_COPIES(0, 1) }),
    });
    await pair.primary.kill();
    await pair.promote();
    await other.hold('window');
    expect(one.service.held()).toEqual([]);
  });
});

describe('A primary that is cut off, and goes on for those on its side', () => {
  it('grants what another has granted: two trust the key for as long as they are apart', async () => {
    const pair = await Pair.start();
    const here = await nameOf(pair.primary);
    const [one, other] = [processAt(here), processAt(pair.replica)];
    pair.part();
    await pair.promote();
    const [old, now] = [await one.hold('apart'), await other.hold('apart')];
    expect(old.fence).not.toBe(now.fence);
    // Each renews on its side, and nobody is told.
    await until(() => one.count('renewed') > 0 && other.count('renewed') > 0);
    expect(bothTrust(old, now)).toBe(true);
    await pair.demote();
    here.leadTo(pair.replica.port);
    here.reset();
    await until(() => one.isTold);
    expect(one.tellings).toEqual(allTold('taken'));
    expect(bothTrust(old, now)).toBe(false);
    expect(now.isHeld).toBe(true);
  });

  it('grants with min-replicas-to-write until it knows that its replica is gone, and then nothing', async () => {
    const pair = await Pair.start(NEEDS_REPLICA);
    const [one, other] = [processAt(pair.primary, SHORT), processAt(pair.replica, SHORT)];
    pair.part();
    const old = await one.hold('moment');
    await pair.promote();
    const now = await other.hold('moment');
    expect(bothTrust(old, now)).toBe(true);
    await until(async () => (await infoOf(pair.primary)).includes('min_slaves_good_slaves:0'));
    await expect(one.hold('another')).rejects.toMatchObject({
      code: 'LEASE_STORE_UNAVAILABLE',
      cause: expect.objectContaining({ message: expect.stringContaining('NOREPLICAS') }),
    });
    await until(() => one.isTold);
    expect(one.tellings).toEqual(allTold('expired'));
    expect(now.isHeld).toBe(true);
  });

  it('grants and renews nothing for waitForReplicas: who had the key has stopped before the other side grants it (rules 1 and 4)', async () => {
    const pair = await Pair.start();
    const one = processAt(pair.primary, SHORT, { waitForReplicas: 1 });
    const other = processAt(pair.replica, SHORT);
    const old = await one.hold('apart');
    pair.part();
    await pair.promote();
    const now = await other.hold('apart', { wait: 3 * SHORT });
    expect(old.isHeld).toBe(false);
    expect(one.tellings).toEqual(allTold('expired'));
    expect(now.fence).toBeGreaterThan(old.fence);
    await expect(one.hold('another')).rejects.toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
    expect(await infoOf(pair.primary)).toContain('role:master');
  });
});
