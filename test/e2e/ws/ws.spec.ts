import { once } from 'node:events';
import { UseFilters } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { afterEach, describe, expect, it } from '@jest/globals';
import { WebSocket } from 'ws';
import { Observable, of } from 'rxjs';
import { LEASE_HELD } from '../../../lib/lease.messages.js';
import { CurrentLease, Fence, LeaseService, WithLease, type Lease } from 'nestjs-lease';
import { CapturingLogger, startHttp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';
import { LeaseWsFilter } from './lease-ws.filter.js';

interface Answer {
  event: string;
  data: unknown;
}

abstract class Orders {
  ran: string[] = [];
  finish: (() => void) | undefined;

  @SubscribeMessage('pay')
  @WithLease((id: string) => `order:${id}`)
  async pay(@MessageBody() id: string, @Fence() fence?: number): Promise<Answer> {
    this.ran.push(id);
    if (id === 'slow') await new Promise<void>((resolve) => (this.finish = resolve));
    return { event: 'paid', data: `${id} ${typeof fence}` };
  }

  @WithLease((id: string) => `order:${id}`)
  @SubscribeMessage('refund')
  async refund(@MessageBody() id: string, @CurrentLease() lease?: Lease): Promise<Answer> {
    return { event: 'refunded', data: `${id} under ${lease!.key}` };
  }

  @SubscribeMessage('list')
  @WithLease('list')
  list(): Observable<Answer> {
    return of({ event: 'item', data: 1 }, { event: 'item', data: 2 });
  }
}

@WebSocketGateway()
class PlainOrders extends Orders {}

@UseFilters(LeaseWsFilter)
@WebSocketGateway()
class FilteredOrders extends Orders {}

const clients = new Set<WebSocket>();
afterEach(() => {
  for (const client of clients) client.terminate();
  clients.clear();
});

async function start(withFilter: boolean) {
  const logger = new CapturingLogger();
  const Gateway = withFilter ? FilteredOrders : PlainOrders;
  const { app, url } = await startHttp({ providers: [Gateway], logger }, undefined, (nest) => {
    nest.useWebSocketAdapter(new WsAdapter(nest));
  });
  const client = new WebSocket(url.replace('http', 'ws'));
  clients.add(client);
  await once(client, 'open');
  const answers: Answer[] = [];
  client.on('message', (data) => answers.push(JSON.parse(String(data)) as Answer));
  const send = (event: string, data: unknown): void => client.send(JSON.stringify({ event, data }));
  const next = async (): Promise<Answer> => {
    await until(() => answers.length > 0);
    return answers.shift()!;
  };
  return { send, next, logger, orders: app.get<Orders>(Gateway), leases: app.get(LeaseService) };
}

describe('a gateway under @WithLease', () => {
  it.each([
    ['pay', 'paid', '7 number'],
    ['refund', 'refunded', '7 under order:7'],
  ])('answers in any order with @SubscribeMessage: %s', async (message, event, data) => {
    const { send, next } = await start(false);
    send(message, '7');
    expect(await next()).toEqual({ event, data });
  });

  it('holds the lease for as long as the handler runs', async () => {
    const { send, next, orders, leases } = await start(true);
    send('pay', 'slow');
    const finish = await until(() => orders.finish);
    send('refund', 'slow');
    expect(await next()).toMatchObject({ event: 'exception', data: { code: 'LEASE_HELD' } });
    finish();
    expect(await next()).toEqual({ event: 'paid', data: 'slow number' });
    expect(await leases.inspect('order:slow')).toBeNull();
  });

  it('streams an Observable and gives the lease back', async () => {
    const { send, next, leases } = await start(false);
    send('list', null);
    expect([(await next()).data, (await next()).data]).toEqual([1, 2]);
    await until(async () => (await leases.inspect('list')) === null);
  });
});

describe('contention over WebSockets', () => {
  it('is an internal error to the client without a filter, no ERROR in the log, and nothing runs', async () => {
    const { send, next, orders, leases, logger } = await start(false);
    await using _ = await leases.acquire('order:7');
    send('pay', '7');
    expect(await next()).toMatchObject({
      event: 'exception',
      data: { status: 'error', message: 'Internal server error' },
    });
    expect(logger.of('error')).toEqual([]);
    expect(orders.ran).toEqual([]);
  });

  it('has its code, its key and when to try again with the filter, and nothing runs', async () => {
    const { send, next, orders, leases } = await start(true);
    await using _ = await leases.acquire('order:7');
    send('pay', '7');
    const { event, data } = (await next()) as { event: string; data: { retryAfterMs: number } };
    expect(event).toBe('exception');
    expect(data).toStrictEqual({
      statusCode: 409,
      code: 'LEASE_HELD',
      message: LEASE_HELD('order:7', data.retryAfterMs),
      key: 'order:7',
      retryAfterMs: expect.any(Number),
    });
    expect(orders.ran).toEqual([]);
  });
});
