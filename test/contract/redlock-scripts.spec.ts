import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { REDLOCK_NOT_READMITTED } from '../../lib/lease.messages.js';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { readmit } from '../../lib/stores/redlock/readmission.js';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { RedlockNode } from '../../lib/stores/redlock/redlock-node.js';
import { claimOf, take } from '../support/claims.js';
import type { RedisServer } from '../support/redis-server.js';
import { admitAll, ask, startNodes, urlsOf } from '../support/redlock-nodes.js';

const LONGEST = 60_000;
const wanted = { until: performance.now() + 60_000, isWanted: () => true };

let servers: RedisServer[];
let nodes: RedlockNode[];
beforeEach(async () => {
  servers = await startNodes(3);
  nodes = servers.map(({ url }) => new RedlockNode(url, LONGEST, () => {}));
});
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

describe('One node', () => {
  it('takes a fence only from who owns the key there (rule 8)', async () => {
    await admitAll(servers);
    const [node] = nodes as [RedlockNode];
    const owner = claimOf('lease/a');
    expect(await node.claim(owner, wanted, 1)).toMatchObject({ kind: 'granted', settled: false });
    const high = Number.MAX_SAFE_INTEGER - 1;
    expect(await node.settle(claimOf('lease/a'), high, 1)).toBe('no');
    expect(await node.settle(claimOf('lease/b'), high, 1)).toBe('no');
    expect((await node.look()).high).toBe(0);
    expect(await node.settle(owner, 4_000_000_000_000_000, 1)).toBe('yes');
    // Of another key: what the node knows counts for all of them.
    const next = await node.claim(claimOf('lease/b'), wanted, 1);
    expect(next).toMatchObject({ kind: 'granted', fence: 4_000_000_000_000_001 });
  });

  it('does nothing for an earlier round of a token that has claimed again (rules 7 and 8)', async () => {
    await admitAll(servers);
    const [node] = nodes as [RedlockNode];
    const claim = claimOf('lease/a');
    await node.claim(claim, wanted, 1);
    await node.claim(claim, wanted, 3);
    // A claim that was overtaken makes it no earlier one.
    expect(await node.claim(claim, wanted, 2)).toMatchObject({ kind: 'granted', settled: false });
    expect(await node.settle(claim, 1, 2)).toBe('no');
    expect(await node.release(claim, {}, wanted, 2)).toBe('no');
    expect(await node.inspect('lease/a')).toMatchObject({ token: claim.token, settled: false });
    expect(await node.settle(claim, 1, 3)).toBe('yes');
    expect(await node.release(claim, {}, wanted, 3)).toBe('yes');
    expect(await node.inspect('lease/a')).toBeUndefined();
  });

  it('gives back a lease that it was healed with only when it is released', async () => {
    await admitAll(servers);
    const [node] = nodes as [RedlockNode];
    const claim = claimOf('lease/a');
    await node.claim(claim, wanted, 1);
    const record = (await node.inspect('lease/a'))!;
    await ask(servers[0]!, (client) => client.del('lease:{a}'));
    expect(await node.heal(claim, record, wanted)).toBe('yes');
    expect(await node.release(claim, {}, wanted, 1)).toBe('no');
    expect(await node.release(claim, {}, wanted)).toBe('yes');
  });

  it('is given back no lease that another took', async () => {
    await admitAll(servers);
    const [node] = nodes as [RedlockNode];
    const [owner, loser] = [claimOf('lease/a'), claimOf('lease/a')];
    await node.claim(owner, wanted, 1);
    const record = (await node.inspect('lease/a'))!;
    expect(await node.heal(loser, record, wanted)).toBe('no');
    expect((await node.inspect('lease/a'))?.token).toBe(owner.token);
  });

  it('in quarantine grants, takes, renews and shows nothing, and is not admitted too soon', async () => {
    const [node] = nodes as [RedlockNode];
    const claim = claimOf('lease/a');
    expect(await node.claim(claim, wanted, 1)).toMatchObject({ kind: 'quarantined' });
    expect(await node.settle(claim, 1, 1)).toBe('unknown');
    expect(await node.renew([claim], wanted.until)).toEqual(['unknown']);
    expect(await node.release(claim, {}, wanted)).toBe('unknown');
    await expect(node.inspect('lease/a')).rejects.toThrow();
    const { run } = await node.look();
    expect(await node.admit(run, 0, 0)).toBeGreaterThan(LONGEST / 2);
    expect((await node.look()).votes).toBe(false);
  });

  it('is not admitted by who looked at another run of it', async () => {
    const [node] = nodes as [RedlockNode];
    await node.look();
    await ask(servers[0]!, (client) => client.hset('nestjs-lease:redlock', 'since', 1));
    expect(await node.admit('another', 0, 0)).toBeGreaterThan(0);
    expect(await node.admit((await node.look()).run, 0, 0)).toBe(0);
  });

  it('that lost its data is not admitted while its majority may be out of reach', async () => {
    await admitAll(servers.slice(1));
    const [node, ...others] = nodes as [RedlockNode, RedlockNode, RedlockNode];
    await node.look();
    await ask(servers[0]!, (client) => client.hset('nestjs-lease:redlock', 'since', 1));
    await servers[1]!.kill();
    const error = REDLOCK_NOT_READMITTED(node.name, 1, 2);
    await expect(readmit(node, [node, ...others])).rejects.toThrow(error);
    expect((await node.look()).votes).toBe(false);
  });
});

describe('A Redlock store', () => {
  it('can be made again in a thread, and renews there', async () => {
    await admitAll(servers);
    const store = new RedlockLeaseStore(urlsOf(servers));
    const held = await take(store, 'lease/a');
    const { args, export: name } = structuredClone(store.thread());
    expect(name).toBe('RedlockLeaseStore');
    const other = new RedlockLeaseStore(
      ...(args as ConstructorParameters<typeof RedlockLeaseStore>),
    );
    expect(await other.renew([held])).toEqual(['renewed']);
    await Promise.all([store.close(), other.close()]);
  });

  it('and a Redis store on the same server do not read each other’s leases', async () => {
    await admitAll(servers);
    const [redlock, redis] = [
      new RedlockLeaseStore(urlsOf(servers)),
      new RedisLeaseStore(servers[0]!.url),
    ];
    await redlock.open();
    await take(redlock, 'lease/a');
    await expect(redis.acquire(claimOf('lease/a'))).rejects.toThrow();
    await Promise.all([redlock.close(), redis.close()]);
  });
});
