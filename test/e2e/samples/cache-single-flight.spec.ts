import { expect, it } from '@jest/globals';
import { createAppModule } from '../../../sample/cache-single-flight/app.module.js';
import { PriceCache } from '../../../sample/cache-single-flight/price-cache.js';
import { Prices } from '../../../sample/cache-single-flight/prices.js';
import { onEveryStore } from './on-every-store.js';

onEveryStore('cache-single-flight', (start) => {
  it('rebuilds once for many requests to two instances, and all get what was built', async () => {
    const cache = new PriceCache();
    const apps = await start((store, instance) => createAppModule(store, instance, cache));
    const urls = await Promise.all(apps.map((app) => app.getUrl()));

    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const response = await fetch(`${urls[at % urls.length]}/prices/eur`);
        return response.json();
      }),
    );

    const rebuilds = apps.reduce((sum, app) => sum + app.get(Prices).rebuilds, 0);
    expect(rebuilds).toBe(1);
    expect(answers).toEqual(answers.map(() => answers[0]));
  });
});
