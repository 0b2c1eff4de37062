import { Logger } from '@nestjs/common';
import { expect, it, jest } from '@jest/globals';
import { createAppModule } from '../../../sample/semaphore/app.module.js';
import { Exports } from '../../../sample/semaphore/exports.js';
import { onEveryStore } from './on-every-store.js';

onEveryStore('semaphore', (start) => {
  it('runs three exports of a tenant at once in the whole fleet, and never a fourth', async () => {
    const apps = await start(createAppModule);
    let running = 0;
    let most = 0;
    for (const app of apps) {
      jest.spyOn(app.get(Logger), 'log').mockImplementation((line: string) => {
        if (line.includes('begins')) most = Math.max(most, ++running);
        if (line.includes('ends')) running--;
      });
    }

    const files = ['a', 'b', 'c', 'd'];
    await Promise.all(
      apps.flatMap((app) => files.map((file) => app.get(Exports).export('acme', file))),
    );

    expect(most).toBe(3);
    expect(running).toBe(0);
  });
});
