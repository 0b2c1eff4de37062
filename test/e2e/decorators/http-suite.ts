import { Readable } from 'node:stream';
import { get, type IncomingMessage } from 'node:http';
import {
  Catch,
  Controller,
  Get,
  HttpCode,
  HttpException,
  HttpStatus,
  Injectable,
  NotFoundException,
  Param,
  Post,
  Sse,
  StreamableFile,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { HttpAdapterHost, type AbstractHttpAdapter } from '@nestjs/core';
import { describe, expect, it } from '@jest/globals';
import { interval, map, NEVER, Observable, of } from 'rxjs';
import {
  LEASE_DONE,
  LEASE_HELD,
  LEASE_LOST,
  LEASE_STORE_UNAVAILABLE,
  NOT_LEADER,
} from '../../../lib/lease.messages.js';
import {
  CurrentLease,
  Fence,
  LeaderOnly,
  LeaseService,
  MemoryLeaseStore,
  WithLease,
  type Lease,
} from 'nestjs-lease';
import { startHttp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

const notFound = new NotFoundException('no such order');

@Injectable()
class Warehouse {
  constructor(private readonly leases: LeaseService) {}

  async pick(): Promise<string> {
    await using lease = await this.leases.acquire('shelf');
    return `picked under ${lease.key}`;
  }
}

@Controller()
class Orders {
  ran = 0;
  fence: number | undefined;
  stream: Readable | undefined;
  /** A request that is being handled, for as long as the test wants. */
  finish: () => void = () => {};

  constructor(
    private readonly warehouse: Warehouse,
    private readonly leases: LeaseService,
  ) {}

  @Post(':id/pay')
  @HttpCode(202)
  @WithLease((id: string) => `order:${id}`)
  async pay(@Param('id') id: string, @Fence() fence?: number): Promise<object> {
    this.ran++;
    this.fence = fence;
    if (id === 'slow') await new Promise<void>((resolve) => (this.finish = resolve));
    return { id };
  }

  /** A plain handler: the refusal comes from the service behind it. */
  @Post('pick')
  pick(): Promise<string> {
    return this.warehouse.pick();
  }

  @Post('skip')
  @WithLease('order:slow', { onHeld: 'skip' })
  async skip(): Promise<string> {
    this.ran++;
    return 'ran';
  }

  @Post('once')
  @WithLease('import', { once: 'batch 7' })
  async once(): Promise<string> {
    this.ran++;
    return 'ran';
  }

  @Post('lead')
  @LeaderOnly('pickers')
  async lead(): Promise<string> {
    this.ran++;
    return 'led';
  }

  @Post('lose')
  @WithLease('short', { maxHold: 200 })
  async lose(@CurrentLease() lease?: Lease): Promise<string> {
    await new Promise((resolve) => lease!.signal.addEventListener('abort', resolve));
    return 'too late';
  }

  @Get('missing')
  @WithLease('missing')
  async missing(): Promise<never> {
    throw notFound;
  }

  @Get('values')
  @WithLease('values')
  values(): Observable<string | undefined> {
    return of(1).pipe(map(() => this.leases.current()?.key));
  }

  @Sse('events')
  @WithLease('events')
  events(): Observable<{ data: string }> {
    return interval(5).pipe(map(() => ({ data: this.leases.current()?.key ?? 'none' })));
  }

  @Sse('silence')
  @WithLease('silence')
  async silence(): Promise<Observable<{ data: string }>> {
    return NEVER;
  }

  @Get('file')
  @WithLease('file')
  async file(): Promise<StreamableFile> {
    this.stream = new Readable({ read() {} });
    this.stream.push('first part, ');
    return new StreamableFile(this.stream);
  }

  @Get('lost-file')
  @WithLease('lost-file', { maxHold: 200 })
  async lostFile(): Promise<StreamableFile> {
    this.stream = new Readable({ read() {} });
    this.stream.push('first part, ');
    return new StreamableFile(this.stream);
  }
}

/** Of the kind that Nest's documentation shows: answers for everything. */
@Catch()
class CatchAll implements ExceptionFilter {
  static seen: unknown[] = [];

  constructor(private readonly host: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    CatchAll.seen.push(exception);
    const status =
      exception instanceof HttpException ? exception.getStatus() : HttpStatus.INTERNAL_SERVER_ERROR;
    const body = { caught: true, status };
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), body, status);
  }
}

class DownStore extends MemoryLeaseStore {
  override readonly name = 'memory';
  isDown = false;
  override acquire(...args: Parameters<MemoryLeaseStore['acquire']>) {
    return this.isDown
      ? Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:6379'))
      : super.acquire(...args);
  }
}

const app = { controllers: [Orders], providers: [Warehouse] };
const post = (url: string): Promise<Response> => fetch(url, { method: 'POST' });

/** The answer to a request, headers first. */
const open = (url: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => get(url, resolve).on('error', reject));

/** What every HTTP platform is to keep. */
export function describeHttp(platform: string, adapter: () => AbstractHttpAdapter): void {
  const start = (options: Parameters<typeof startHttp>[0] = {}, filter = false) =>
    startHttp({ ...app, ...options }, adapter(), (nest) => {
      if (filter) nest.useGlobalFilters(new CatchAll(nest.get(HttpAdapterHost)));
    });

  /** An order that is being paid, and will be until the test ends it. */
  async function startPaying(options?: Parameters<typeof startHttp>[0], filter = false) {
    const started = await start(options, filter);
    const orders = started.app.get(Orders);
    const first = post(`${started.url}/slow/pay`);
    await until(() => orders.ran === 1);
    const finish = async (): Promise<Response> => {
      orders.finish();
      return await first;
    };
    return { ...started, orders, finish };
  }

  describe(`a controller under @WithLease on ${platform}`, () => {
    it('answers 409 LEASE_HELD with Retry-After and a body that says nothing of the holder (rules 9 and 15)', async () => {
      const { url, orders, finish } = await startPaying({ lease: { instance: 'secret-host:1' } });
      const refused = await post(`${url}/slow/pay`);
      const body = (await refused.json()) as { retryAfterMs: number };
      expect(refused.status).toBe(409);
      expect(body).toStrictEqual({
        statusCode: 409,
        code: 'LEASE_HELD',
        message: LEASE_HELD('order:slow', body.retryAfterMs),
        key: 'order:slow',
        retryAfterMs: expect.any(Number),
      });
      expect(body.retryAfterMs).toBeGreaterThan(0);
      expect(body.retryAfterMs).toBeLessThanOrEqual(10_000);
      expect(refused.headers.get('retry-after')).toBe(String(Math.ceil(body.retryAfterMs / 1_000)));
      expect(orders.ran).toBe(1);
      expect((await finish()).status).toBe(202);
    });

    it('lets another key through, with the status and the body of the handler', async () => {
      const { url, orders, finish } = await startPaying();
      const other = await post(`${url}/7/pay`);
      expect([other.status, await other.json()]).toEqual([202, { id: '7' }]);
      expect(orders.fence).toBeGreaterThan(0);
      await finish();
    });

    it('gives the key back when the handler is done', async () => {
      const { url, finish, orders } = await startPaying();
      await finish();
      const second = post(`${url}/slow/pay`);
      await until(() => orders.ran === 2);
      orders.finish();
      expect((await second).status).toBe(202);
    });

    it('answers the same when a service behind a plain handler was refused', async () => {
      const { app, url } = await start();
      await using _ = await app.get(LeaseService).acquire('shelf', { ttl: '3s' });
      const refused = await post(`${url}/pick`);
      expect(refused.status).toBe(409);
      expect(await refused.json()).toMatchObject({ code: 'LEASE_HELD', key: 'shelf' });
      expect(refused.headers.get('retry-after')).toBe('3');
    });

    it('sends Retry-After under a user’s catch-all filter too', async () => {
      const { url, finish } = await startPaying({}, true);
      const refused = await post(`${url}/slow/pay`);
      expect([refused.status, await refused.json()]).toEqual([409, { caught: true, status: 409 }]);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      await finish();
    });

    it('sends Retry-After under a catch-all filter when a service was refused', async () => {
      const { app, url } = await start({}, true);
      await using _ = await app.get(LeaseService).acquire('shelf', { ttl: '3s' });
      const refused = await post(`${url}/pick`);
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([409, '3']);
    });

    it("answers as for nothing and runs nothing with onHeld: 'skip'", async () => {
      const { url, orders, finish } = await startPaying();
      const skipped = await post(`${url}/skip`);
      expect([skipped.status, await skipped.text()]).toEqual([201, '']);
      expect(orders.ran).toBe(1);
      await finish();
    });

    it('answers 409 LEASE_DONE when the unit of work is done', async () => {
      const { app, url } = await start();
      expect((await post(`${url}/once`)).status).toBe(201);
      const refused = await post(`${url}/once`);
      expect(refused.status).toBe(409);
      expect(await refused.json()).toMatchObject({
        code: 'LEASE_DONE',
        key: 'import',
        message: LEASE_DONE('import', 'batch 7'),
      });
      expect(app.get(Orders).ran).toBe(1);
    });

    it('answers 409 NOT_LEADER where the instance does not lead, and runs nothing', async () => {
      const election = { campaignWhen: () => false };
      const { app, url } = await start({ lease: { election } });
      const refused = await post(`${url}/lead`);
      expect(refused.status).toBe(409);
      expect(await refused.json()).toStrictEqual({
        statusCode: 409,
        code: 'NOT_LEADER',
        message: NOT_LEADER('pickers'),
        key: 'pickers',
      });
      expect(app.get(Orders).ran).toBe(0);
    });

    it('runs where the instance leads', async () => {
      const { url } = await start();
      await until(async () => (await post(`${url}/lead`)).status === 201);
    });

    it('answers 503 LEASE_STORE_UNAVAILABLE without the words of the store, and runs nothing (rule 9)', async () => {
      const store = new DownStore();
      const { app, url } = await start({ lease: { store } });
      store.isDown = true;
      const refused = await post(`${url}/7/pay`);
      expect(refused.status).toBe(503);
      expect(await refused.json()).toStrictEqual({
        statusCode: 503,
        code: 'LEASE_STORE_UNAVAILABLE',
        message: LEASE_STORE_UNAVAILABLE('order:7', 'memory'),
        key: 'order:7',
      });
      expect(app.get(Orders).ran).toBe(0);
    });

    it('answers 503 LEASE_LOST instead of a result that came after the loss (rule 13)', async () => {
      const { url } = await start();
      const lost = await post(`${url}/lose`);
      expect(lost.status).toBe(503);
      expect(await lost.json()).toMatchObject({
        code: 'LEASE_LOST',
        key: 'short',
        message: LEASE_LOST('short', 'max-hold'),
      });
    });

    it('passes the handler’s own exception through, the same object and status (rule 13)', async () => {
      const { url } = await start({}, true);
      CatchAll.seen = [];
      const missing = await fetch(`${url}/missing`);
      expect(missing.status).toBe(404);
      expect(CatchAll.seen).toEqual([notFound]);
      expect(CatchAll.seen[0]).toBe(notFound);
    });
  });

  describe(`a result that takes its time on ${platform}`, () => {
    it('an Observable has the lease while it runs, and gives it back', async () => {
      const { app, url } = await start();
      expect(await (await fetch(`${url}/values`)).text()).toBe('values');
      expect(await app.get(LeaseService).inspect('values')).toBeNull();
    });

    it.each(['events', 'silence'])(
      'server-sent %s hold the lease until the client goes away',
      async (path) => {
        const { app, url } = await start();
        const leases = app.get(LeaseService);
        const client = get(`${url}/${path}`).on('error', () => {});
        await until(() => leases.inspect(path));
        client.destroy();
        await until(async () => (await leases.inspect(path)) === null);
      },
    );

    it('server-sent events are made inside the lease', async () => {
      const { url } = await start();
      const answer = await open(`${url}/events`);
      let text = '';
      for await (const chunk of answer) {
        text += String(chunk);
        if (text.includes('data:')) break;
      }
      expect(text).toContain('data: events');
    });

    it('a second listener of server-sent events is refused with 409 and Retry-After', async () => {
      const { app, url } = await start();
      await using _ = await app.get(LeaseService).acquire('events');
      const refused = await open(`${url}/events`);
      refused.resume();
      expect(refused.statusCode).toBe(409);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    });

    it('a StreamableFile holds the lease until the whole stream has been sent', async () => {
      const { app, url } = await start();
      const leases = app.get(LeaseService);
      const answer = await open(`${url}/file`);
      const refused = await fetch(`${url}/file`);
      expect(refused.status).toBe(409);
      app.get(Orders).stream!.push('second part');
      app.get(Orders).stream!.push(null);
      let text = '';
      for await (const chunk of answer) text += String(chunk);
      expect(text).toBe('first part, second part');
      await until(async () => (await leases.inspect('file')) === null);
    });

    it('a StreamableFile gives the lease back when the client goes away', async () => {
      const { app, url } = await start();
      const leases = app.get(LeaseService);
      const answer = await open(`${url}/file`);
      expect(await leases.inspect('file')).not.toBeNull();
      answer.destroy();
      await until(async () => (await leases.inspect('file')) === null);
    });

    it('a StreamableFile whose lease is lost is cut off and not ended as if it were whole', async () => {
      const { url } = await start();
      const answer = await open(`${url}/lost-file`);
      const end = await new Promise((resolve) => {
        answer
          .resume()
          .on('end', () => resolve('whole'))
          .on('error', () => resolve('cut off'));
      });
      expect(end).toBe('cut off');
    });
  });
}
