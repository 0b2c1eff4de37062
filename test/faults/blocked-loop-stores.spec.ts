import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NO_THREAD, POSTGRES_NOT_FOR_THREAD } from '../../lib/lease.messages.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import { EtcdLeaseStore } from '../../lib/stores/etcd/etcd-lease-store.js';
import type { LeaseStore } from '../../lib/stores/lease-store.js';
import { PostgresAdvisoryLeaseStore } from '../../lib/stores/postgres/postgres-advisory-lease-store.js';
import { PostgresLeaseStore } from '../../lib/stores/postgres/postgres-lease-store.js';
import { RedlockLeaseStore } from '../../lib/stores/redlock/redlock-lease-store.js';
import { BlockingHolder, type StorePlan } from '../support/blocking-process.js';
import { claimOf } from '../support/claims.js';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';
import { startEtcd } from '../support/etcd-server.js';
import { startPostgres } from '../support/postgres-server.js';
import { admitAll, startNodes, urlsOf } from '../support/redlock-nodes.js';
import { until } from '../support/until.js';

const TTL = 3_000;
const HUNG_AFTER = 30_000;
const STORY_TIMEOUT = 60_000;

/** A store with its servers. */
interface Place {
  readonly store: LeaseStore;
  readonly plan: StorePlan;
  stop(): Promise<unknown>;
}

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async etcd() {
    const server = await startEtcd();
    const options = { endpoints: [server.url] };
    return {
      store: new EtcdLeaseStore(options),
      plan: { file: 'stores/etcd/etcd-lease-store.js', name: 'EtcdLeaseStore', args: [options] },
      stop: () => server.stop(),
    };
  },
  async PostgreSQL() {
    const server = await startPostgres();
    const file = 'stores/postgres/postgres-lease-store.js';
    return {
      store: new PostgresLeaseStore(server.url),
      plan: { file, name: 'PostgresLeaseStore', args: [server.url] },
      stop: () => server.stop(),
    };
  },
  async Redlock() {
    const servers = await startNodes(3);
    await admitAll(servers);
    const file = 'stores/redlock/redlock-lease-store.js';
    return {
      store: new RedlockLeaseStore(urlsOf(servers)),
      plan: { file, name: 'RedlockLeaseStore', args: [urlsOf(servers)] },
      stop: () => Promise.all(servers.map((server) => server.stop())),
    };
  },
};

describe('A process that blocks its event loop and renews in a thread', () => {
  /** What each went through; all at the same time, for it takes three ttls. */
  const stories = new Map<string, Promise<Story>>();
  let lib: CompiledLib;

  beforeAll(async () => {
    lib = await compileLib();
    for (const [name, start] of Object.entries(PLACES)) {
      const story = start().then((place) => liveThrough(lib, place));
      story.catch(() => {});
      stories.set(name, story);
    }
  });
  afterAll(async () => {
    await Promise.allSettled(stories.values());
    await lib.remove();
  });

  it.each(Object.keys(PLACES))(
    'holds its lease in %s all the time (rule 4)',
    async (name) => {
      const { answers, woke, acted, fence } = await stories.get(name)!;
      expect(answers).toEqual([false]);
      expect(woke).toEqual({ said: 'woke', isHeld: true, fence });
      expect(acted).toEqual({ said: 'acted', fence });
    },
    STORY_TIMEOUT,
  );

  it.each(Object.keys(PLACES))('gives its lease in %s back, and ends (rule 12)', async (name) => {
    const { fence, successor, errors } = await stories.get(name)!;
    expect(successor).toBeGreaterThan(fence);
    expect(errors).toBe('');
  });
});

interface Story {
  readonly fence: number;
  /** To the claims of others while it was blocked: each once. */
  readonly answers: readonly boolean[];
  readonly woke: unknown;
  readonly acted: unknown;
  readonly successor: number;
  readonly errors: string;
}

async function liveThrough(lib: CompiledLib, { store, plan, stop }: Place): Promise<Story> {
  const options = { lib, store: plan, key: 'with', ttl: TTL, hungAfter: HUNG_AFTER };
  const holder = await BlockingHolder.start(options);
  const next = claimOf('lease/with');
  try {
    // By now the thread has started, and it is not the event loop that renews.
    await until(() => holder.said.filter(({ said }) => said === 'renewed').length >= 4);
    holder.tell(`block ${3 * TTL}`);
    await holder.hears('blocked');
    const answers = new Set<boolean>();
    const woke = await until(
      async () => {
        answers.add((await store.acquire(next)).granted);
        await setTimeout(20);
        return holder.heard('woke');
      },
      { timeout: 5 * TTL },
    );
    holder.tell('act');
    const acted = await until(() => holder.heard('acted') ?? holder.heard('refrained'));
    holder.tell('release');
    const successor = await until(async () => {
      const answer = await store.acquire(next);
      return answer.granted ? answer.fence : undefined;
    });
    holder.leave();
    await until(() => holder.hasExited);
    const { fence, errors } = holder;
    return { fence, answers: [...answers], woke, acted, successor, errors };
  } finally {
    await holder.kill();
    await store.close();
    await stop();
  }
}

describe('Renewing in a thread with a store that cannot be made there', () => {
  const url = 'postgres://127.0.0.1:1/nowhere';
  it.each([
    ['its kind', new PostgresAdvisoryLeaseStore(url), NO_THREAD],
    [
      'what it was given',
      new PostgresLeaseStore({ connectionString: url, password: () => 'secret' }),
      () => POSTGRES_NOT_FOR_THREAD('password'),
    ],
  ])('is refused at start: %s', async (_, store: LeaseStore, message) => {
    const options = { store, namespace: 'lease', instance: 'test', ttl: TTL, wait: 0 };
    const start = (): unknown =>
      new LeaseEngine({ ...options, renewInThread: { hungAfter: HUNG_AFTER } });
    expect(start).toThrow(new TypeError(message(store.name)));
    await store.close();
  });
});
