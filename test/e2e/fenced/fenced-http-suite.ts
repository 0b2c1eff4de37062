import { createHmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import {
  Controller,
  Get,
  Injectable,
  NotFoundException,
  Param,
  Post,
  UseGuards,
  ForbiddenException,
} from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { HttpModule, HttpService } from '@nestjs/axios';
import { describe, expect, it, jest } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import {
  Fence,
  Fenced,
  fencedFetch,
  fenceHeaders,
  fenceHttp,
  LeaseService,
  MemoryFenceGate,
  WithLease,
  type LeaseEvent,
} from 'nestjs-lease';
import { GATE_SILENT, GATE_UNAVAILABLE } from '../../../lib/lease.messages.js';
import { LeaseEngine } from '../../../lib/lease/lease-engine.js';
import { startApp, startHttp } from '../../support/nest-app.js';

const SECRET = 'a secret of sixteen bytes and more';
const OLD_SECRET = 'the secret that was used before it';

const inner = new MemoryFenceGate();

interface Raises {
  raise(): Promise<never>;
}

@Injectable()
class Deny {
  canActivate(): boolean {
    throw new ForbiddenException('no user');
  }
}

interface MonthRequest {
  params: { month: string };
}

@Controller('months')
class Months {
  calls: (number | undefined)[] = [];

  @Post(':month/close')
  @Fenced({ key: ({ params }: MonthRequest) => `books:${params.month}` })
  async close(@Param('month') month: string, @Fence() fence?: number): Promise<string> {
    this.calls.push(fence);
    await new Promise((resolve) => setImmediate(resolve));
    // Found by itself, after an await.
    await inner.admit(`inner ${month}`);
    return `closed ${month}`;
  }

  @Fenced({ required: false })
  @Post(':month/peek')
  async peek(@Fence() fence?: number): Promise<string> {
    return `fence ${fence ?? 'none'}`;
  }

  @Post(':month/leased')
  @Fenced()
  @WithLease('own')
  async leased(@Fence() fence?: number): Promise<string> {
    return String(fence);
  }

  @Post(':month/answered')
  @Fenced({
    key: () => {
      throw new NotFoundException('no such month');
    },
  })
  async answered(): Promise<void> {}

  @Post(':month/guarded')
  @UseGuards(Deny)
  @Fenced()
  async guarded(): Promise<void> {}
}

@Fenced({ internal: true })
@Controller('internal')
class Internal {
  calls = 0;

  @Post('fence')
  async fence(@Fence() fence: number): Promise<string> {
    return String(fence);
  }

  @Post('write')
  async write(): Promise<string> {
    this.calls++;
    return 'written';
  }

  @Fenced({ internal: true, key: 'other' })
  @Get('both')
  async both(): Promise<string> {
    this.calls++;
    return 'both';
  }
}

const now = (): number => Date.now() * 1_000;

const signed = (key: string, fence: number, secret = SECRET): Record<string, string> =>
  fenceHeaders({ fence: { key, fence }, secret });

export function describeFencedHttp(name: string, adapter: () => AbstractHttpAdapter): void {
  async function start(secrets: string | string[] = [SECRET, OLD_SECRET]) {
    const gate = new MemoryFenceGate();
    const { app, url } = await startHttp(
      { controllers: [Months, Internal], lease: { fencing: { secrets, gate } } },
      adapter(),
    );
    const events: LeaseEvent[] = [];
    app.get(LeaseService).events$.subscribe((event) => events.push(event));
    const post = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`${url}${path}`, { method: 'POST', headers });
      const text = await response.text();
      return {
        status: response.status,
        body: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : text,
      };
    };
    return { app, url, post, gate, events, months: app.get(Months), internal: app.get(Internal) };
  }

  describe(`@Fenced() on ${name}`, () => {
    it('lets a call in with a fence that is not stale, and has it for the handler and its gates', async () => {
      const { post, months } = await start();
      const fence = now();
      const close = () => post('/months/a/close', signed('books:a', fence));
      expect(await close()).toEqual({ status: 201, body: 'closed a' });
      expect(await close()).toEqual({ status: 201, body: 'closed a' });
      expect(months.calls).toEqual([fence, fence]);
      await expect(inner.admit('inner a', fence - 1)).rejects.toMatchObject({ highest: fence });
    });

    it('answers 409 to a stale one, and tells of it', async () => {
      const { post, months, events } = await start();
      const fence = now();
      await post('/months/b/close', signed('books:b', fence));
      const { status, body } = await post('/months/b/close', signed('books:b', fence - 1));
      expect(status).toBe(409);
      expect(body).toMatchObject({ code: 'STALE_FENCE', key: 'books:b', highest: fence });
      expect(months.calls).toHaveLength(1);
      expect(events).toMatchObject([{ type: 'stale-fence', key: 'books:b', fence: fence - 1 }]);
    });

    it('answers 428 where a fence is required and missing', async () => {
      const { post } = await start();
      expect(await post('/months/c/close')).toMatchObject({
        status: 428,
        body: { code: 'FENCE_REQUIRED', key: 'books:c' },
      });
      expect(await post('/months/c/peek')).toEqual({ status: 201, body: 'fence none' });
    });

    const fence = now();
    const right = signed('books:d', fence);
    it.each([
      ['no number', { ...right, 'lease-fence': 'seven' }],
      ['negative', { ...right, 'lease-fence': '-5' }],
      ['fractional', { ...right, 'lease-fence': '1.5' }],
      ['huge', { ...right, 'lease-fence': '9'.repeat(17) }],
      ['above 2^53', { ...right, 'lease-fence': '9999999999999999' }],
      ['hexadecimal', { ...right, 'lease-fence': '0x10' }],
      ['with a plus', { ...right, 'lease-fence': '+5' }],
      ['with a zero in front', { ...right, 'lease-fence': `0${fence}` }],
      ['empty', { ...right, 'lease-fence': '' }],
      ['without its key', { 'lease-fence': String(fence) }],
      ['a key without a fence', { 'lease-key': 'books%3Ad' }],
      ['a signature alone', { 'lease-signature': right['lease-signature']! }],
      ['a key that is badly encoded', { ...right, 'lease-key': '%E0%A4' }],
      ['a key that is encoded in another way', { ...right, 'lease-key': 'books:d' }],
      ['a key with a control character', { ...right, 'lease-key': 'a%0Ab' }],
      ['of another key', signed('books:z', fence)],
      ['far ahead of the clock', signed('books:d', now() + 2 * 86_400_000_000)],
    ])('answers 400 to a fence that is %s', async (_, headers) => {
      const { post, months } = await start();
      const { status, body } = await post('/months/d/close', headers as Record<string, string>);
      expect({ status, body }).toMatchObject({ status: 400, body: { code: 'BAD_FENCE' } });
      expect(months.calls).toHaveLength(0);
    });

    it.each(Object.keys(right))('answers 400 to a header that came twice: %s', async (twice) => {
      const { url } = await start();
      const status = await new Promise((resolve, reject) => {
        const call = httpRequest(`${url}/months/d/close`, { method: 'POST' }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        for (const [header, value] of Object.entries(right)) call.setHeader(header, value);
        call.setHeader(twice, [right[twice]!, right[twice]!]);
        call.on('error', reject).end();
      });
      expect(status).toBe(400);
    });

    it('answers 503 while its gate does not answer, and says so once', async () => {
      const { post, months, gate, app } = await start();
      const warnings: string[] = [];
      app
        .get(LeaseEngine, { strict: false })
        .events.warnings.subscribe((one) => warnings.push(one));
      const close = () => post('/months/s/close', signed('books:s', now()));
      const down = new Error('connection refused');
      const raise = jest.spyOn(gate as unknown as Raises, 'raise').mockRejectedValue(down);
      for (let i = 0; i < 2; i++) {
        expect(await close()).toMatchObject({
          status: 503,
          body: {
            code: 'FENCE_GATE_UNAVAILABLE',
            key: 'books:s',
            message: GATE_UNAVAILABLE('books:s'),
          },
        });
      }
      expect(months.calls).toHaveLength(0);
      expect(warnings).toEqual([GATE_SILENT('Months.close', 'connection refused')]);
      raise.mockRestore();
      expect((await close()).status).toBe(201);
    });

    it.each([
      ['without a signature', { ...right, 'lease-signature': undefined }],
      [
        'with one of another secret',
        signed('books:d', fence, 'somebody else’s secret of some length'),
      ],
      ['with one of another fence', { ...right, 'lease-fence': String(fence + 1) }],
      ['with one of another key', { ...right, 'lease-key': 'books%3Ae' }],
      [
        'with one that is cut',
        { ...right, 'lease-signature': right['lease-signature']!.slice(0, -2) },
      ],
      ['with an empty one', { ...right, 'lease-signature': '' }],
      [
        'with a digest of another kind',
        {
          ...right,
          'lease-signature': `v1=${createHmac('sha1', SECRET).update('x').digest('base64url')}`,
        },
      ],
    ])('answers 403 to a fence %s', async (_, headers) => {
      const { post, months } = await start();
      const given = Object.fromEntries(
        Object.entries(headers).filter(([, value]) => value !== undefined),
      ) as Record<string, string>;
      expect(await post('/months/d/close', given)).toMatchObject({
        status: 403,
        body: { code: 'FENCE_NOT_TRUSTED' },
      });
      expect(months.calls).toHaveLength(0);
    });

    it('believes either of two secrets, for a rotation', async () => {
      const { post } = await start([SECRET, OLD_SECRET]);
      expect((await post('/months/r/close', signed('books:r', now(), OLD_SECRET))).status).toBe(
        201,
      );
      expect((await post('/months/r/close', signed('books:r', now(), SECRET))).status).toBe(201);
    });

    it('lets guards speak first, and a lease of its own have its own fence', async () => {
      const { post } = await start();
      expect((await post('/months/g/guarded')).status).toBe(403);
      const sent = now() - 1_000_000;
      const { body } = await post('/months/g/leased', signed('books:g', sent));
      expect(Number(body)).toBeGreaterThan(sent);
    });

    it('passes on what the function of the key answers', async () => {
      const { post } = await start();
      expect(await post('/months/a/answered', signed('books:a', now()))).toMatchObject({
        status: 404,
        body: { message: 'no such month' },
      });
    });

    it('on a controller, declared internal, needs no signature', async () => {
      const { post, url, internal } = await start();
      const headers = { 'lease-key': 'job', 'lease-fence': String(now()) };
      expect(await post('/internal/write', headers)).toEqual({ status: 201, body: 'written' });
      expect((await post('/internal/write')).status).toBe(428);
      const stale = { ...headers, 'lease-fence': String(Number(headers['lease-fence']) - 1) };
      expect((await post('/internal/write', stale)).status).toBe(409);
      // What the method says counts, once.
      const both = await fetch(`${url}/internal/both`, {
        headers: { ...headers, 'lease-key': 'other' },
      });
      expect(await both.text()).toBe('both');
      expect(internal.calls).toBe(2);
      expect(await post('/internal/fence', headers)).toEqual({
        status: 201,
        body: headers['lease-fence'],
      });
    });
  });

  describe(`calls to ${name} under a lease`, () => {
    async function caller() {
      const sender = await startApp({
        imports: [HttpModule],
        lease: { fencing: { secrets: SECRET } },
      });
      return { leases: sender.get(LeaseService), http: sender.get(HttpService, { strict: false }) };
    }

    it('carry its fence by fetch', async () => {
      const { url, months } = await start();
      const { leases } = await caller();
      const send = fencedFetch();
      await leases.run('books:ü/1', async (lease) => {
        const path = `${url}/months/${encodeURIComponent('ü/1')}/close`;
        const response = await send(
          new Request(path, { method: 'POST', headers: { 'x-mine': '1' } }),
        );
        expect(response.status).toBe(201);
        expect(months.calls).toEqual([lease.fence]);
      });
      await expect(send(url)).rejects.toThrow('runs under no lease');
      const response = await fencedFetch(fetch, { required: false })(`${url}/months/x/peek`, {
        method: 'POST',
      });
      expect(await response.text()).toBe('fence none');
    });

    it('carry its fence by HttpService', async () => {
      const { url, months } = await start();
      const { leases, http } = await caller();
      const stop = fenceHttp(http);
      const post = () => firstValueFrom(http.post(`${url}/months/m/close`));
      await leases.run('books:m', async (lease) => {
        expect((await post()).status).toBe(201);
        expect(months.calls).toEqual([lease.fence]);
      });
      await expect(post()).rejects.toThrow('runs under no lease');
      stop();
      await expect(post()).rejects.toMatchObject({ response: { status: 428 } });
    });
  });
}
