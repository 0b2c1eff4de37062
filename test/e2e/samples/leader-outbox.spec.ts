import type { INestApplication } from '@nestjs/common';
import { expect, it } from '@jest/globals';
import { ElectionService, type Leadership } from 'nestjs-lease';
import { createAppModule } from '../../../sample/leader-outbox/app.module.js';
import { OutboxTable } from '../../../sample/leader-outbox/outbox-table.js';
import { until } from '../../support/until.js';
import { onEveryStore } from './on-every-store.js';

const leadershipOf = (app: INestApplication): Leadership =>
  app.get(ElectionService).leadership('outbox');

onEveryStore('leader-outbox', (start) => {
  it('dispatches under one leader, and under the next with a higher fence when that shuts down', async () => {
    const table = new OutboxTable();
    const apps = await start((store, instance) => createAppModule(store, instance, table));
    const sent = (): number[] => [
      ...new Set(table.messages.flatMap(({ sentUnder }) => sentUnder ?? [])),
    ];

    await until(() => sent().length === 1);
    const leaders = apps.filter((app) => leadershipOf(app).isLeader);
    expect(leaders).toHaveLength(1);
    const leader = leaders[0]!;
    const first = leadershipOf(leader).lease!.fence;
    expect(sent()).toEqual([first]);

    await leader.close();
    await until(() => sent().length === 2);
    const next = apps.find((app) => leadershipOf(app).isLeader)!;
    expect(next).not.toBe(leader);
    expect(sent()).toEqual([first, leadershipOf(next).lease!.fence]);
    expect(sent()[1]).toBeGreaterThan(first);
  });
});
