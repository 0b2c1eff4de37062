import { aMoment, seconds, until } from '../pace.js';
import type { Scene } from '../show.js';

export const leaderScene: Scene = async ({ stage, fleet, world }) => {
  stage.scene(
    3,
    'The leader is killed, and another takes over',
    '@Interval(400) @LeaderOnly("outbox"): only the leader dispatches. It dies without giving anything back; its lease runs out after 2 s, and the next leader has a higher fence.',
  );
  await until(() => fleet.leader !== undefined);
  const leader = fleet.leader;
  const fence = leader?.outbox.lease?.fence;
  if (leader === undefined || fence === undefined) throw new Error('nobody was elected');

  const dispatched: { instance: string; fence: number }[] = [];
  const dispatches = world.dispatches.subscribe((dispatch) => {
    dispatched.push(dispatch);
    stage.happens(dispatch.instance, 'dispatches');
  });
  stage.happens(leader.name, 'leads');
  stage.happens(leader.name, `fence ${fence}`);
  await until(() => dispatched.length >= 3);

  leader.kill();
  const killedAt = performance.now();
  stage.happens(leader.name, '✗ killed');
  stage.laneEnds(leader.name);
  const elections = fleet.events$.subscribe((event) => {
    if (event.type !== 'elected') return;
    stage.happens(event.instance, `elected, ${seconds(performance.now() - killedAt)} later`);
    stage.happens(event.instance, `fence ${event.fence}`);
  });
  await until(() => dispatched.filter(({ instance }) => instance !== leader.name).length >= 3);
  await aMoment(100);
  dispatches.unsubscribe();
  elections.unsubscribe();

  const successor = fleet.leader;
  const later = successor?.outbox.lease?.fence ?? 0;
  const after = dispatched.slice(
    dispatched.findLastIndex(({ instance }) => instance === leader.name) + 1,
  );
  stage.space();
  stage.check(
    successor !== undefined && after.length > 0,
    `${successor?.name ?? 'Nobody'} leads in place of ${leader.name}.`,
  );
  stage.check(
    after.every(({ instance }) => instance === successor?.name),
    'One instance dispatches, the other does not.',
    after.map(({ instance }) => instance).join(', '),
  );
  stage.check(later > fence, `Its fence is higher: ${later} > ${fence}.`);
};
