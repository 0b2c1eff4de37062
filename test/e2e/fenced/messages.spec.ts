import { Controller, type INestMicroservice } from '@nestjs/common';
import {
  ClientProxyFactory,
  MessagePattern,
  Payload,
  Transport,
  type ClientProxy,
} from '@nestjs/microservices';
import { afterEach, describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { Fence, Fenced, fencePayload, LeaseService, MemoryFenceGate } from 'nestjs-lease';
import { startApp, startMicroservice } from '../../support/nest-app.js';
import { LeaseRpcFilter } from '../rpc/lease-rpc.filter.js';

const SECRET = 'a secret of sixteen bytes and more';
const inner = new MemoryFenceGate();

interface Close {
  readonly month: string;
}

@Controller()
class Months {
  @MessagePattern('close')
  @Fenced({ key: ({ month }: Close) => `books:${month}` })
  async close(@Payload() { month }: Close, @Fence() fence?: number): Promise<string> {
    await inner.admit(`inner ${month}`);
    return `${month} ${fence}`;
  }

  // Without @Payload(), Nest passes the data and its context by position.
  @MessagePattern('bare')
  @Fenced({ required: false })
  async bare(@Fence() first?: number, @Fence() second?: number): Promise<unknown> {
    return [first ?? 'none', second ?? 'none'];
  }
}

let client: ClientProxy;
afterEach(() => client.close());

async function start() {
  const gate = new MemoryFenceGate();
  const { port } = await startMicroservice(
    { controllers: [Months], lease: { fencing: { secrets: SECRET, gate } } },
    (app: INestMicroservice) => void app.useGlobalFilters(new LeaseRpcFilter()),
  );
  client = ClientProxyFactory.create({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port },
  });
  const sender = await startApp({ lease: { fencing: { secrets: SECRET } } });
  const send = (data: unknown, pattern = 'close'): Promise<unknown> =>
    firstValueFrom(client.send(pattern, data));
  return { send, leases: sender.get(LeaseService) };
}

describe('@Fenced() on a message handler', () => {
  it('lets a message in with the fence of its sender’s lease', async () => {
    const { send, leases } = await start();
    await leases.run('books:a', async (lease) => {
      expect(await send(fencePayload({ month: 'a' }))).toBe(`a ${lease.fence}`);
      await expect(inner.admit('inner a', lease.fence - 1)).rejects.toMatchObject({
        highest: lease.fence,
      });
    });
  });

  it('is the fence of the sender’s lease where the transport has put something else', async () => {
    const { send, leases } = await start();
    await leases.run('books:a', async ({ fence }) => {
      const forged = { key: 'books:a', fence: fence + 3_600_000_000 };
      expect(await send(fencePayload(forged), 'bare')).toEqual([fence, fence]);
    });
    expect(await send(1e15, 'bare')).toEqual(['none', 'none']);
  });

  it('refuses one that is stale, missing, malformed or forged', async () => {
    const { send, leases } = await start();
    await using lease = await leases.acquire('books:b');
    const at = (fence: number) =>
      fencePayload({ month: 'b' }, { fence: { key: 'books:b', fence }, secret: SECRET });
    await send(at(lease.fence));
    await expect(send(at(lease.fence - 1))).rejects.toMatchObject({ code: 'STALE_FENCE' });
    await expect(send({ month: 'b' })).rejects.toMatchObject({ code: 'FENCE_REQUIRED' });
    const { leaseFence } = at(lease.fence);
    for (const bad of [
      null,
      7,
      'x',
      {},
      { ...leaseFence, fence: '5' },
      { ...leaseFence, key: 7 },
    ]) {
      await expect(send({ month: 'b', leaseFence: bad })).rejects.toMatchObject({
        code: 'BAD_FENCE',
      });
    }
    for (const signature of [undefined, null, 7, {}, '', 'v1=x']) {
      await expect(
        send({ month: 'b', leaseFence: { ...leaseFence, signature } }),
      ).rejects.toMatchObject({ code: 'FENCE_NOT_TRUSTED' });
    }
  });

  it('what carries no fence is told to the sender', async () => {
    const { leases } = await start();
    expect(() => fencePayload({ month: 'c' })).toThrow('runs under no lease');
    await leases.run('books:c', async () => {
      for (const bad of [7, 'x', null, []]) {
        expect(() => fencePayload(bad as never)).toThrow('is an object');
      }
    });
    expect(() => fencePayload({}, { fence: 5 })).toThrow('needs the key of the lease');
  });
});
