import { Controller } from '@nestjs/common';
import {
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  Transport,
  type ClientProxy,
} from '@nestjs/microservices';
import { afterEach, describe, expect, it } from '@jest/globals';
import { firstValueFrom, Observable, of, toArray } from 'rxjs';
import { LEASE_HELD } from '../../../lib/lease.messages.js';
import { CurrentLease, Fence, LeaseService, WithLease, type Lease } from 'nestjs-lease';
import { CapturingLogger, startMicroservice } from '../../support/nest-app.js';
import { until } from '../../support/until.js';
import { LeaseRpcFilter } from './lease-rpc.filter.js';

@Controller()
class Orders {
  ran: string[] = [];
  finish: (() => void) | undefined;

  @MessagePattern('pay')
  @WithLease((id: string) => `order:${id}`)
  async pay(@Payload() id: string, @Fence() fence?: number): Promise<string> {
    this.ran.push(`pay ${id}`);
    if (id === 'slow') await new Promise<void>((resolve) => (this.finish = resolve));
    return `${id} ${typeof fence}`;
  }

  @WithLease((id: string) => `order:${id}`)
  @MessagePattern('refund')
  async refund(@Payload() id: string, @CurrentLease() lease?: Lease): Promise<string> {
    return `${id} under ${lease!.key}`;
  }

  @MessagePattern('list')
  @WithLease('list')
  list(): Observable<number> {
    return of(1, 2, 3);
  }

  @EventPattern('paid')
  @WithLease((id: string) => `order:${id}`)
  async paid(@Payload() id: string): Promise<void> {
    this.ran.push(`paid ${id}`);
  }
}

const clients = new Set<ClientProxy>();
afterEach(async () => {
  for (const client of clients) await client.close();
  clients.clear();
});

async function start(withFilter: boolean) {
  const logger = new CapturingLogger();
  const { app, port } = await startMicroservice({ controllers: [Orders], logger }, (nest) => {
    if (withFilter) nest.useGlobalFilters(new LeaseRpcFilter());
  });
  const client = ClientProxyFactory.create({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port },
  });
  clients.add(client);
  const ask = (pattern: string, data: unknown): Promise<unknown> =>
    firstValueFrom(client.send(pattern, data));
  return { ask, client, logger, orders: app.get(Orders), leases: app.get(LeaseService) };
}

describe('a message handler under @WithLease', () => {
  it.each([
    ['pay', '7', '7 number'],
    ['refund', '7', '7 under order:7'],
  ])('answers in any order with @MessagePattern: %s', async (pattern, id, answer) => {
    const { ask } = await start(false);
    expect(await ask(pattern, id)).toBe(answer);
  });

  it('holds the lease for as long as the handler runs', async () => {
    const { ask, orders, leases } = await start(true);
    const first = ask('pay', 'slow');
    const finish = await until(() => orders.finish);
    await expect(ask('refund', 'slow')).rejects.toMatchObject({ code: 'LEASE_HELD' });
    finish();
    expect(await first).toBe('slow number');
    await until(async () => (await leases.inspect('order:slow')) === null);
    expect(await ask('refund', 'slow')).toBe('slow under order:slow');
  });

  it('streams an Observable and gives the lease back', async () => {
    const { client, leases } = await start(false);
    expect(await firstValueFrom(client.send<number>('list', {}).pipe(toArray()))).toEqual([
      1, 2, 3,
    ]);
    expect(await leases.inspect('list')).toBeNull();
  });

  it('runs for events', async () => {
    const { client, orders } = await start(false);
    client.emit('paid', '7').subscribe();
    await until(() => orders.ran.includes('paid 7'));
  });
});

describe('contention over RPC', () => {
  it('is an internal error to the client without a filter, no ERROR in the log, and nothing runs', async () => {
    const { ask, orders, leases, logger } = await start(false);
    await using _ = await leases.acquire('order:7');
    await expect(ask('pay', '7')).rejects.toEqual({
      status: 'error',
      message: 'Internal server error',
    });
    expect(logger.of('error')).toEqual([]);
    expect(orders.ran).toEqual([]);
  });

  it('has its code, its key and when to try again with the filter, and nothing runs', async () => {
    const { ask, orders, leases } = await start(true);
    await using _ = await leases.acquire('order:7');
    const refusal = (await ask('pay', '7').catch((error: unknown) => error)) as {
      retryAfterMs: number;
    };
    expect(refusal).toStrictEqual({
      statusCode: 409,
      code: 'LEASE_HELD',
      message: LEASE_HELD('order:7', refusal.retryAfterMs),
      key: 'order:7',
      retryAfterMs: expect.any(Number),
    });
    expect(orders.ran).toEqual([]);
  });
});
