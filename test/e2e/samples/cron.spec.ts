import { expect, it } from '@jest/globals';
import { createAppModule } from '../../../sample/cron/app.module.js';
import { Books } from '../../../sample/cron/books.js';
import { until } from '../../support/until.js';
import { onEveryStore } from './on-every-store.js';

onEveryStore('cron', (start) => {
  it('runs the job once per tick, of three instances that fire', async () => {
    const apps = await start(createAppModule, ['one', 'two', 'three']);
    const ticks = (): string[] =>
      apps.flatMap((app) => app.get(Books).closed.map((at) => at.toISOString().slice(0, 19)));

    await until(() => ticks().length >= 3);

    expect(ticks()).toHaveLength(new Set(ticks()).size);
  });
});
