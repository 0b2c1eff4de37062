import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { RedisFenceGate } from 'nestjs-lease/redis';
import { markName } from '../../lib/fencing/redis/mark-name.js';
import { slotOf } from '../../lib/stores/redis/cluster/slot.js';
import { startRedisCluster, type RedisCluster } from '../support/redis-cluster.js';
import { aFence, aResource, describeFenceGate } from './gate-suite.js';

let cluster: RedisCluster;
let client: Cluster;
let prefixed: Cluster;

beforeAll(async () => {
  cluster = await startRedisCluster();
  client = new Cluster(cluster.seeds);
  prefixed = new Cluster(cluster.seeds, { keyPrefix: 'app:' });
}, 60_000);

afterAll(async () => {
  client.disconnect();
  prefixed.disconnect();
  await cluster.stop();
});

describeFenceGate('a Redis Cluster', () => ({
  gate: new RedisFenceGate(client),
  another: () => new RedisFenceGate(client),
}));

describe('in a cluster', () => {
  const names = ['plain', 'a{b}c', '{b}', 'a}b', '{}a', '}{', '{{a}}', 'a{', '{a', 'ü{ö}', '{}{a}'];

  it.each(names)('the key %p and its mark are on one node', async (name) => {
    const key = `${name} ${aResource()}`;
    const fence = aFence();
    for (const each of [client, prefixed]) {
      const gate = new RedisFenceGate(each);
      await gate.set(key, 'new', { fence });
      await expect(gate.set(key, 'stale', { fence: fence - 1 })).rejects.toMatchObject({
        highest: fence,
      });
      expect(await each.get(key)).toBe('new');
    }
  });

  it('several keys go with the resource in their braces', async () => {
    const gate = new RedisFenceGate(client);
    const fence = aFence();
    await gate.set('{prices}:eur', '1', { resource: 'prices', fence });
    await gate.set('{prices}:usd', '2', { resource: 'prices', fence });
    expect(await gate.del(['{prices}:eur', '{prices}:usd'], { resource: 'prices', fence })).toBe(2);
  });

  it('keys that are elsewhere than the resource are named, and nothing is written', async () => {
    const gate = new RedisFenceGate(client);
    await expect(
      gate.set('prices:eur', '1', { resource: 'prices', fence: aFence() }),
    ).rejects.toThrow('"prices:eur" and the resource "prices" are not in one slot');
    expect(await client.get('prices:eur')).toBeNull();
  });
});

it('a mark has the slot of its resource and a name of its own, under any prefix', () => {
  const parts = ['', 'a', '{', '}', 'b', '{}', '{a}', ':', '#1'];
  const resources = parts.flatMap((x) => parts.flatMap((y) => parts.map((z) => x + y + z)));
  for (const prefix of ['', 'app:', '{app}:', 'a{']) {
    const marks = new Map<string, string>();
    for (const resource of new Set(resources.filter(Boolean))) {
      const mark = markName('fence', resource, prefix);
      expect(marks.get(mark)).toBeUndefined();
      marks.set(mark, resource);
      // A prefix that opens a brace and does not close it is nobody's.
      if (prefix === 'a{') continue;
      expect([resource, slotOf(prefix + mark)]).toEqual([resource, slotOf(prefix + resource)]);
    }
  }
});
