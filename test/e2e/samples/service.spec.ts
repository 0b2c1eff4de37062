import { expect, it } from '@jest/globals';
import { LeaseService } from 'nestjs-lease';
import { createAppModule } from '../../../sample/service/app.module.js';
import { Reports } from '../../../sample/service/reports.js';
import { until } from '../../support/until.js';
import { onEveryStore } from './on-every-store.js';

onEveryStore('service', (start) => {
  it('builds a report on one instance after the other', async () => {
    const apps = await start(createAppModule);
    let building = 0;
    let most = 0;
    for (const app of apps) {
      app.get(LeaseService).events$.subscribe(({ type }) => {
        if (type === 'acquired') most = Math.max(most, ++building);
        if (type === 'released') building--;
      });
    }

    const reports = await Promise.all(apps.map((app) => app.get(Reports).build('42')));

    expect(new Set(reports).size).toBe(2);
    expect(most).toBe(1);
  });

  it('waits no longer than its caller does', async () => {
    const [one, two] = await start(createAppModule);
    const building = one!.get(Reports).build('42');
    await until(() => one!.get(LeaseService).held().length === 1);
    const client = new AbortController();
    const waiting = two!.get(Reports).build('42', client.signal);

    client.abort(new Error('the client has gone away'));

    await expect(waiting).rejects.toThrow('the client has gone away');
    await building;
  });

  it('gives the lease back on leaving the block that declared it', async () => {
    const [one, two] = await start(createAppModule);

    const first = await one!.get(Reports).archive('42');

    expect(one!.get(LeaseService).held()).toEqual([]);
    expect(await two!.get(Reports).archive('42')).toBeGreaterThan(first);
  });
});
