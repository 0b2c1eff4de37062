import { expect, it } from '@jest/globals';
import { createAppModule } from '../../../sample/controller-409/app.module.js';
import { onEveryStore } from './on-every-store.js';

onEveryStore('controller-409', (start) => {
  it('serves one of two callers and tells the other when to come back', async () => {
    const apps = await start(createAppModule);

    const responses = await Promise.all(
      apps.map(async (app) => fetch(`${await app.getUrl()}/orders/42/pay`, { method: 'POST' })),
    );

    const refused = responses.find(({ status }) => status === 409);
    expect(responses.map(({ status }) => status).toSorted()).toEqual([201, 409]);
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused?.json()).toMatchObject({ code: 'LEASE_HELD', key: 'order:42' });
  });

  it('serves callers of two orders at once', async () => {
    const [one, two] = await start(createAppModule);
    const pay = async (app: typeof one, order: number): Promise<number> => {
      const response = await fetch(`${await app!.getUrl()}/orders/${order}/pay`, {
        method: 'POST',
      });
      return response.status;
    };

    expect(await Promise.all([pay(one, 1), pay(two, 2)])).toEqual([201, 201]);
  });
});
