import { afterAll, beforeAll } from '@jest/globals';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';
import { runAtOnce } from '../support/at-once.js';
import {
  startEtcd,
  startEtcdCluster,
  type EtcdCluster,
  type EtcdMember,
} from '../support/etcd-server.js';

let single: EtcdMember;
let frozen: EtcdMember;
let cluster: EtcdCluster;
beforeAll(async () => {
  [single, frozen, cluster] = await Promise.all([startEtcd(), startEtcd(), startEtcdCluster(3)]);
});
afterAll(() => Promise.all([single?.stop(), frozen?.stop(), cluster?.stop()]));

const AT_ONCE = 12;

describeLeaseStore(
  'EtcdLeaseStore with one member',
  () => new EtcdLeaseStore({ endpoints: single.url }),
  runAtOnce(AT_ONCE),
);

// Each store begins with another member, as processes do.
let next = 0;
describeLeaseStore(
  'EtcdLeaseStore with three members and a prefix',
  () => {
    const { urls } = cluster;
    const first = next++ % urls.length;
    const endpoints = [...urls.slice(first), ...urls.slice(0, first)];
    return new EtcdLeaseStore({ endpoints, prefix: 'app[1]/{x}*\\0%00:' });
  },
  runAtOnce(AT_ONCE),
);

describeLeaseStore(
  'EtcdLeaseStore with a member that freezes',
  () => new EtcdLeaseStore({ endpoints: frozen.url }),
  {
    ...runAtOnce(1, (name) => name.startsWith('a claim that nobody waits for')),
    freeze: () => frozen.pause(),
    thaw: async () => frozen.resume(),
  },
);
