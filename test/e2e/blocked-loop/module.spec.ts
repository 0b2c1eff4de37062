import { describe, expect, it } from '@jest/globals';
import { LeaseService, MemoryLeaseStore, type LeaseModuleOptions } from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';
import { NO_THREAD } from '../../../lib/lease.messages.js';
import { resolveModuleOptions } from '../../../lib/lease.module-definition.js';
import { CapturingLogger, startApp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

const resolved = (renewInThread: unknown) =>
  resolveModuleOptions({ renewInThread } as LeaseModuleOptions).renewInThread;

describe('renewInThread', () => {
  it.each([
    [undefined, undefined],
    [false, undefined],
    [true, { hungAfter: 30_000 }],
    [{}, { hungAfter: 30_000 }],
    [{ hungAfter: '2m' }, { hungAfter: 120_000 }],
  ])('of %j means %j', (option, meant) => {
    expect(resolved(option)).toEqual(meant);
  });

  it.each([
    ['yes', '"renewInThread" is "yes"'],
    [null, '"renewInThread" is null'],
    [{ hungAfter: '1x' }, '"renewInThread.hungAfter" is "1x"'],
    [{ hungAfter: 10 }, '"renewInThread.hungAfter" is 10'],
    [{ hungAfterwards: 1 }, 'There is no option "hungAfterwards"'],
  ])('of %j is an error at start that names it', (option, message) => {
    expect(() => resolved(option)).toThrow(message);
  });

  it('with the memory store keeps the application from starting, and says why', async () => {
    const starting = startApp({ lease: { store: new MemoryLeaseStore(), renewInThread: true } });
    await expect(starting).rejects.toThrow(NO_THREAD('memory'));
  });

  it('that cannot start its thread is said in the log', async () => {
    const logger = new CapturingLogger();
    const store = Object.assign(new RedisLeaseStore('redis://127.0.0.1:1'), {
      thread: () => ({ module: 'file:///there/is/no/such/module.js', export: 'None', args: [] }),
    });
    await startApp({ lease: { store, renewInThread: true }, logger });
    const said = (): unknown => logger.of('warn').find((line) => /thread that/.test(String(line)));
    expect(await until(said)).toContain('The event loop renews them from now on');
  });
});

describe('An event loop that is blocked for long', () => {
  it('is said once in the log, with what to do', async () => {
    const logger = new CapturingLogger();
    const app = await startApp({ lease: { ttl: '3s' }, logger });
    const leases = app.get(LeaseService);
    const lagging: string[] = [];
    leases.events$.subscribe(({ type, key }) => type === 'lagging' && lagging.push(key));
    await leases.acquire('a');
    await leases.acquire('b');
    // Past the first look at the clock, after half a second, and past half a margin.
    const wakeAt = performance.now() + 1_000;
    while (performance.now() < wakeAt);
    await until(() => lagging.length === 2);
    const said = logger.of('warn').filter((line) => /event loop was blocked/.test(String(line)));
    expect(said).toHaveLength(1);
    expect(said[0]).toContain('renewInThread: true');
  });
});
