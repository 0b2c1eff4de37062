import { LeaseLostException } from 'nestjs-lease';
import type { Instance } from '../fleet.js';
import { aMoment, until } from '../pace.js';
import type { Scene, Show } from '../show.js';

const KEY = 'report:7';
const TTL = 2_400;
const PAUSE = 1_200;

export const toldInTimeScene: Scene = async (show) => {
  const { stage, fleet } = show;
  const to = fleet.leader ?? fleet.alive[0];
  const from = fleet.alive.find((instance) => instance !== to);
  if (to === undefined || from === undefined) throw new Error('two instances are needed');
  stage.scene(
    4,
    'A holder that is cut off, or paused, is told in time',
    `${from.name} holds "${KEY}" for a ttl of ${TTL} ms and renews it, until its line to the store goes dead. By its own clock it trusts the lease for 5/6 of the ttl and no longer; ${to.name} can have it after the whole ttl. Then everything is paused.`,
  );
  await cutOff(show, from, to);
  await aMoment();
  await pause(show, to);
};

async function cutOff(show: Show, from: Instance, to: Instance): Promise<void> {
  const { stage } = show;
  let renewedAt = NaN;
  let toldAt = NaN;
  let renewals = 0;
  const events = from.leases.events$.subscribe((event) => {
    if (event.key !== KEY) return;
    if (event.type === 'renewed') {
      renewedAt = performance.now();
      renewals++;
      stage.happens(from.name, 'renews');
    }
    if (event.type === 'renewal-failed' && event.failures === 1) {
      stage.happens(from.name, `no answer; trusts it ${Math.round(event.remainingMs)} ms more`);
    }
  });

  const lost = await from.leases.acquire(KEY, { ttl: TTL });
  lost.signal.addEventListener('abort', () => {
    toldAt = performance.now();
    stage.happens(from.name, '! told: signal aborted');
  });
  stage.happens(from.name, `owns ${KEY}`);
  stage.happens(from.name, `fence ${lost.fence}`);
  const taking = to.leases.acquire(KEY, { ttl: TTL, wait: '15s' });
  stage.happens(to.name, `waits for ${KEY}`);
  await until(() => renewals >= 2);
  from.wire.cut();
  stage.happens(from.name, '✗ line goes dead');

  const held = await taking;
  const takenAt = performance.now();
  stage.happens(to.name, `owns ${KEY}`);
  stage.happens(to.name, `fence ${held.fence}`);
  events.unsubscribe();
  show.handover = { from, lost, to, held };

  const after = (at: number): string => `${Math.round(at - renewedAt)} ms`;
  const { reason } = lost.signal as { reason: unknown };
  stage.space();
  stage.check(
    reason instanceof LeaseLostException && reason.reason === 'expired',
    `${from.name} was told ${after(toldAt)} after its last renewal.`,
    'it was not told',
  );
  stage.check(
    toldAt < takenAt,
    `${to.name} had the key ${after(takenAt)} after it, when ${from.name} had known for ${Math.round(takenAt - toldAt)} ms.`,
    'before that',
  );
}

/** The event loop stands still for all: no timer can tell the holder, so its first look at the lease has to. */
async function pause({ stage }: Show, holder: Instance): Promise<void> {
  stage.space();
  const lease = await holder.leases.acquire('report:8', { ttl: 1_000 });
  stage.happens(holder.name, 'owns report:8 for 1 s');
  stage.happens(holder.name, '✗ process is paused …');
  const wasHeld = lease.isHeld;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE);
  const isHeld = lease.isHeld;
  stage.happens(holder.name, `… for ${PAUSE} ms; wakes`);
  stage.happens(holder.name, `! isHeld: ${isHeld}`);

  stage.space();
  stage.check(
    wasHeld && !isHeld,
    `${holder.name}'s first look after the pause said so, before any timer could.`,
    `isHeld was ${wasHeld} before and ${isHeld} after`,
  );
}
