import { spawnSync } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { RedisLeaseStore } from '../../lib/stores/redis/redis-lease-store.js';
import { claimOf } from '../support/claims.js';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';
import { HolderProcess } from '../support/holder-process.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { until } from '../support/until.js';

const TTL = 1_500;

describe('A process that holds a lease', () => {
  let server: RedisServer;
  let lib: CompiledLib;
  let store: RedisLeaseStore;
  let holder: HolderProcess;

  beforeAll(async () => {
    [server, lib] = await Promise.all([startRedis(), compileLib()]);
    store = new RedisLeaseStore(server.url);
  });
  afterEach(() => holder.kill());
  afterAll(async () => {
    await store.close();
    await lib.remove();
    await server.stop();
  });

  /** As the next owner would. */
  const takeOver = async (key: string): Promise<number> => {
    const claim = claimOf(`lease/${key}`);
    const grant = await until(async () => {
      const answer = await store.acquire(claim);
      return answer.granted ? answer : undefined;
    });
    return grant.fence;
  };

  it('and was stopped past its ttl finds itself lost before it acts (rule 4)', async () => {
    holder = await HolderProcess.start(lib, server.url, 'stopped', TTL);
    holder.tell('act');
    await until(() => holder.said.length === 2);
    expect(holder.said[1]).toEqual({ said: 'acted', fence: holder.fence });

    await holder.freeze();
    // It will find this before anything else when it wakes up.
    holder.tell('act');
    const successor = await takeOver('stopped');
    holder.thaw();
    await until(() => holder.said.some(({ said }) => said === 'refrained'));

    expect(holder.said.slice(2)).not.toContainEqual(expect.objectContaining({ said: 'acted' }));
    expect(holder.said).toContainEqual({ said: 'lost', reason: 'expired' });
    expect(successor).toBeGreaterThan(holder.fence);
    expect(holder.errors).toBe('');
  });

  it('and was stopped past its ttl writes with a fence that is lower than its successor’s (rule 8)', async () => {
    holder = await HolderProcess.start(lib, server.url, 'stale', TTL);
    // Storage that keeps the highest fence it has seen and refuses what is lower.
    let highest = 0;
    const write = (fence: number): boolean => fence >= (highest = Math.max(highest, fence));
    expect(write(holder.fence)).toBe(true);

    await holder.freeze();
    expect(write(await takeOver('stale'))).toBe(true);
    holder.thaw();
    holder.tell('act-anyway');
    const stale = await until(() => holder.said.find(({ said }) => said === 'acted'));
    expect(write(stale.fence!)).toBe(false);
  });

  it('and was stopped past its ttl leaves its successor alone (rule 7)', async () => {
    holder = await HolderProcess.start(lib, server.url, 'successor', TTL);
    await holder.freeze();
    const successor = await takeOver('successor');
    holder.thaw();
    holder.tell('release');
    // Once by its signal, once as the outcome of its release.
    await until(() => holder.said.filter(({ said }) => said === 'lost').length === 2);
    const record = await store.inspect('lease/successor');
    expect(record?.holders.map(({ fence }) => fence)).toEqual([successor]);
  });

  it('and is killed frees the key by its ttl', async () => {
    holder = await HolderProcess.start(lib, server.url, 'killed', TTL);
    await holder.kill();
    const since = performance.now();
    expect(await takeOver('killed')).toBeGreaterThan(holder.fence);
    expect(performance.now() - since).toBeLessThanOrEqual(TTL + 200);
  });

  it.each(['process.exit()', 'throw new Error("the end")'])(
    'under run() and ends by %s right after leaves the key free (rule 7)',
    async (end) => {
      const program = `
        const { LeaseEngine } = await import(${JSON.stringify(`${lib.dir}/lease/lease-engine.js`)});
        const { RedisLeaseStore } = await import(${JSON.stringify(`${lib.dir}/stores/redis/redis-lease-store.js`)});
        const store = new RedisLeaseStore({ port: ${server.port}, enableAutoPipelining: true });
        const engine = new LeaseEngine({ store, namespace: 'lease', instance: 'i', ttl: 600_000, wait: 0 });
        await engine.run('exit', () => process.stdout.write('ran'));
        await store.inspect('lease/none');
        const { Redis } = await import('ioredis');
        const admin = new Redis(${JSON.stringify(server.url)});
        await engine.run('exit', async () => { await admin.script('FLUSH'); });
        ${end};
      `;
      const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
        encoding: 'utf8',
        cwd: lib.dir,
      });
      expect(stdout).toBe('ran');
      await until(async () => (await store.inspect('lease/exit')) === null);
    },
  );

  it('ends by itself after it has released and closed its store (rule 12)', async () => {
    holder = await HolderProcess.start(lib, server.url, 'ending', TTL);
    holder.tell('release');
    await until(() => holder.said.at(-1)?.said === 'released');
    holder.leave();
    await until(() => holder.hasExited);
    expect(holder.errors).toBe('');
  });
});
