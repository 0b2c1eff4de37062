/** The renewing thread: a store and a connection of its own, and nothing that could keep its event loop. */
import { parentPort, workerData } from 'node:worker_threads';
import type { LeaseStore } from '../../stores/lease-store.js';
import { Heartbeat } from './heartbeat.js';
import { sharedClock } from './shared-time.js';
import type { FromThread, ThreadStart, ToThread } from './thread-messages.js';
import { Wards } from './wards.js';

const { store: plan, heartbeat, hungAfter } = workerData as ThreadStart;
const loaded = (await import(plan.module)) as Record<
  string,
  new (...args: unknown[]) => LeaseStore
>;
const store = new loaded[plan.export]!(...plan.args);
// A store that is down is tried again by every renewal.
store.open?.().catch(() => {});

const port = parentPort!;
const wards = new Wards({
  store,
  clock: sharedClock,
  random: Math.random,
  heartbeat: new Heartbeat(sharedClock.now, heartbeat),
  hungAfter,
  post: (message: FromThread) => port.postMessage(message, []),
});
port.on('message', (message: ToThread) => wards.hear(message));
