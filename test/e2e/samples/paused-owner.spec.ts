import { expect, it } from '@jest/globals';
import { createAppModule } from '../../../sample/paused-owner/app.module.js';
import { Books } from '../../../sample/paused-owner/books.js';
import { Ledger } from '../../../sample/paused-owner/ledger.js';
import { onEveryStore } from './on-every-store.js';

onEveryStore('paused-owner', (start) => {
  it('leaves the stale data of the paused owner where there is no gate, and the data of the next where there is', async () => {
    const ledger = new Ledger();
    const [a, b] = await start((store, instance) => createAppModule(store, instance, ledger));

    await a!.get(Books).close('may', 'of A', () => b!.get(Books).close('may', 'of B'));

    expect(ledger.read('may, without a gate')).toBe('of A');
    expect(ledger.read('may, with a gate')).toBe('of B');
  });
});
