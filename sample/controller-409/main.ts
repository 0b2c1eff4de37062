// A controller that refuses a second caller while the first is being served: 409 with Retry-After.
//
//   @Post(':id/pay')
//   @WithLease((id: string) => `order:${id}`)
//   async pay(@Param('id') id: string) { … }
//
// npm run sample -- controller-409
import { Logger } from '@nestjs/common';
import { startInstances } from '../start-instances.js';
import { createAppModule } from './app.module.js';

const apps = await startInstances(createAppModule, ['one', 'two']);
const logger = new Logger('client');

await Promise.all(
  apps.map(async (app) => {
    const url = `${await app.getUrl()}/orders/42/pay`;
    logger.log(`curl -i -X POST ${url}`);
    const response = await fetch(url, { method: 'POST', headers: { connection: 'close' } });
    const retryAfter = response.headers.get('retry-after');
    logger.log(
      `${response.status}${retryAfter ? `, Retry-After: ${retryAfter}` : ''} ${await response.text()}`,
    );
  }),
);
