import { describe, expect, it, jest } from '@jest/globals';
import { LeaseLostException, LeaseService, MemoryFenceGate, type LeaseEvent } from 'nestjs-lease';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { CapturingLogger, startApp } from '../support/nest-app.js';
import { until } from '../support/until.js';

async function start(logger = new CapturingLogger()) {
  const gate = new MemoryFenceGate();
  const app = await startApp({ logger, providers: [{ provide: 'GATE', useValue: gate }] });
  const leases = app.get(LeaseService);
  const events: LeaseEvent[] = [];
  leases.events$.subscribe((event) => events.push(event));
  return { app, gate, leases, events, logger };
}

/** The mark that a resource has: the least fence that passes. */
async function markOf(gate: MemoryFenceGate, resource: string): Promise<number> {
  return await gate.admit(resource, 1).then(
    () => 1,
    (error: { highest: number }) => error.highest,
  );
}

describe('the fence of a write', () => {
  it('is that of the lease the code runs under, through every await', async () => {
    const { gate, leases } = await start();
    let fence = 0;
    await leases.run('books', async (lease) => {
      ({ fence } = lease);
      await new Promise((resolve) => setImmediate(resolve));
      await gate.admit('ledger');
    });
    expect(await markOf(gate, 'ledger')).toBe(fence);
  });

  it('is passed by hand: a number, a lease, a key and its fence', async () => {
    const { gate, leases } = await start();
    await using lease = await leases.acquire('books');
    await gate.admit('a', lease);
    await gate.admit('b', lease.fence);
    await gate.admit('c', { key: 'books', fence: lease.fence });
    for (const each of ['a', 'b', 'c']) expect(await markOf(gate, each)).toBe(lease.fence);
  });

  it('is there or it is an error: nothing is written without', async () => {
    const { gate, leases } = await start();
    await expect(gate.admit('ledger')).rejects.toThrow('runs under no lease');
    await leases.run('books', async () => {});
    await expect(gate.admit('ledger')).rejects.toThrow('Nothing was done');
  });

  it('of a lease that is lost is not asked for (rule 4)', async () => {
    const { gate, leases } = await start();
    const lease = await leases.acquire('books');
    await lease.release();
    await expect(gate.admit('ledger', lease)).rejects.toBeInstanceOf(LeaseLostException);
  });

  it('of several leases is that on the name of the resource, and else nobody’s guess', async () => {
    const { gate, leases } = await start();
    await leases.run('books', async (books) => {
      await leases.run('cache', async () => {
        await expect(gate.admit('ledger')).rejects.toThrow('"cache" or of "books"');
        await gate.admit('books');
        await gate.admit('ledger', books);
        expect(await markOf(gate, 'books')).toBe(books.fence);
        expect(await markOf(gate, 'ledger')).toBe(books.fence);
      });
      await gate.admit('ledger');
    });
  });

  it('of a lease that is over is not replaced by that of the lease around it', async () => {
    const { app, gate, leases } = await start();
    const { scope } = app.get(LeaseEngine);
    // What came with a call may be far ahead of what this process is granted.
    const around = { key: 'batch', fence: Date.now() * 1_000 + 3_600_000_000 };
    await scope.runUnder(around, async () => {
      let end!: () => void;
      const over = new Promise<void>((resolve) => (end = resolve));
      let late!: Promise<void>;
      await leases.run('books', async () => {
        await gate.admit('books');
        late = over.then(() => gate.admit('books'));
      });
      await using _next = await leases.acquire('books');
      end();
      await expect(late).rejects.toBeInstanceOf(LeaseLostException);
      await gate.admit('batch');
    });
    await leases.run('books', () => gate.admit('books'));
  });

  it('of a lease on several keys is that of the key the resource is named by', async () => {
    const { gate, leases } = await start();
    await leases.run(['account:1', 'account:2'], async (lease) => {
      await gate.admit('account:1');
      expect(await markOf(gate, 'account:1')).toBe(lease.fenceOf('account:1'));
      await expect(gate.admit('ledger')).rejects.toThrow('{ key, fence }');
      await expect(gate.admit('ledger', lease)).rejects.toThrow('whose fences do not compare');
    });
  });

  it('of a permit is refused: those who hold one work beside each other', async () => {
    const { gate, leases } = await start();
    await leases.run(
      'exports',
      async () => await expect(gate.admit('x')).rejects.toThrow('one of 3 permits'),
      { permits: 3 },
    );
  });

  it('of a re-entered lease is the same', async () => {
    const { gate, leases } = await start();
    await leases.run('books', () =>
      leases.run('books', async (inner) => {
        await gate.admit('ledger');
        expect(await markOf(gate, 'ledger')).toBe(inner.fence);
      }),
    );
  });
});

describe('a stale fence is an event of the application', () => {
  it('whose lease it is of', async () => {
    const { gate, leases, events } = await start();
    await leases.run('books', async (lease) => {
      await gate.admit('ledger', lease.fence + 5);
      await gate.admit('ledger').catch(() => undefined);
      expect(events.filter(({ type }) => type === 'stale-fence')).toMatchObject([
        { key: 'books', resource: 'ledger', fence: lease.fence, highest: lease.fence + 5 },
      ]);
    });
  });

  it('that provides the gate, when it came as a number', async () => {
    const { gate, events } = await start();
    const fence = Date.now() * 1_000;
    await gate.admit('ledger', fence);
    await gate.admit('ledger', fence - 1).catch(() => undefined);
    expect(events).toMatchObject([{ type: 'stale-fence', key: 'ledger', fence: fence - 1 }]);
  });

  it('and of one only, where there are two in the process', async () => {
    const one = await start();
    const two = await start();
    await one.leases.run('books', async (lease) => {
      await one.gate.admit('ledger', lease.fence + 5);
      await one.gate.admit('ledger').catch(() => undefined);
    });
    const stale = (events: LeaseEvent[]) => events.filter(({ type }) => type === 'stale-fence');
    expect(stale(one.events)).toHaveLength(1);
    expect(stale(two.events)).toHaveLength(0);
  });
});

it('an application that has ended hears nothing of a gate any more, and is not kept by it', async () => {
  const gate = new MemoryFenceGate();
  const app = await startApp({ providers: [{ provide: 'GATE', useValue: gate }] });
  const emit = jest.spyOn(app.get(LeaseEngine).events, 'emit');
  const fence = Date.now() * 1_000;
  await gate.admit('ledger', fence);
  await gate.admit('ledger', fence - 1).catch(() => undefined);
  expect(emit).toHaveBeenCalledTimes(1);
  await app.close();
  emit.mockClear();
  await gate.admit('ledger', fence - 1).catch(() => undefined);
  expect(emit).not.toHaveBeenCalled();
});

describe('a fence that is not the lease’s own', () => {
  const foreign = (logger: CapturingLogger) =>
    logger.of('warn').filter((line) => String(line).includes('fence of another lease'));

  it('is warned of, once', async () => {
    const { gate, leases, logger } = await start();
    await leases.run('books', async (lease) => {
      await gate.admit('ledger', lease.fence + 1);
      await gate.admit('ledger', lease.fence + 2);
      await gate.admit('other', lease.fence);
    });
    expect(foreign(logger)).toHaveLength(1);
    expect(foreign(logger)[0]).toContain('"books"');
  });

  it('is not warned of in production', async () => {
    const { gate, leases, logger } = await start();
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      await leases.run('books', (lease) => gate.admit('ledger', lease.fence + 1));
    } finally {
      process.env['NODE_ENV'] = before;
    }
    expect(foreign(logger)).toHaveLength(0);
  });
});

it('a fence that came with a call is no lease: nothing of the process is entered by it', async () => {
  const { app, gate, leases } = await start();
  const { scope } = app.get(LeaseEngine);
  const fence = Date.now() * 1_000;
  await scope.runUnder({ key: 'books', fence }, async () => {
    expect(leases.current()).toBeUndefined();
    await gate.admit('ledger');
    await leases.run('books', async (lease) => {
      // Two bearers of one key: the one that is nearer.
      await gate.admit('inner');
      expect(await markOf(gate, 'inner')).toBe(lease.fence);
    });
  });
  expect(await markOf(gate, 'ledger')).toBe(fence);
  await until(() => leases.held().length === 0);
});
