import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { FenceGate, MemoryFenceGate, StaleFenceException } from 'nestjs-lease';
import { PostgresFenceGate, postgresFenceSql } from 'nestjs-lease/postgres';
import { RedisFenceGate } from 'nestjs-lease/redis';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { settle } from '../support/virtual-clock.js';
import {
  HALF_A_DAY,
  RETENTION,
  acceptedFencesNeverGoDown,
  type Journal,
} from './accepted-fences.js';

const KEPT = 4 * HALF_A_DAY;

describe('in memory, while time passes', () => {
  const STEP = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        type: fc.constant('write' as const),
        resource: fc.constantFrom('a', 'b'),
        halfDays: fc.integer({ min: -5, max: 3 }),
        bit: fc.nat(2),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('time passes' as const),
        // Also backwards, by as much as is promised to do no harm.
        halfDays: fc.integer({ min: -2, max: 12 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('retire' as const) }) },
  );

  interface Retiring extends FenceGate {
    retire(): Promise<number>;
  }

  const property = (
    gateOf: (wall: () => number) => Retiring,
    told: { retired: number } = { retired: 0 },
  ) =>
    fc.asyncProperty(fc.array(STEP, { maxLength: 25, size: 'max' }), async (story) => {
      let wall = Date.UTC(2026, 0, 1);
      let latest = wall;
      const gate = gateOf(() => wall);
      const last = new Map<string, number>();
      for (const step of story) {
        if (step.type === 'retire') told.retired += await gate.retire();
        if (step.type === 'time passes') {
          const ms = HALF_A_DAY / 1_000;
          wall = Math.max(wall + step.halfDays * ms, latest - 2 * ms);
          latest = Math.max(latest, wall);
        }
        if (step.type !== 'write') continue;
        const { resource } = step;
        const fence = wall * 1_000 + step.halfDays * HALF_A_DAY + step.bit;
        const before = last.get(resource) ?? 0;
        try {
          await gate.admit(resource, fence);
        } catch (error) {
          expect(error).toBeInstanceOf(StaleFenceException);
          const isTooOld = fence < wall * 1_000 - KEPT / 2;
          expect(fence < before || isTooOld).toBe(true);
          continue;
        }
        expect(fence).toBeGreaterThanOrEqual(before);
        last.set(resource, fence);
        // A retry.
        await gate.admit(resource, fence);
      }
    });

  it('no older fence is accepted, whatever is retired meanwhile', async () => {
    const told = { retired: 0 };
    const gateOf = (wall: () => number) => new MemoryFenceGate({ retention: RETENTION, wall });
    await fc.assert(property(gateOf, told), { numRuns: 3_000 });
    // Or it would have shown nothing.
    expect(told.retired).toBeGreaterThan(500);
  });

  /** As little as a gate can be, and wrong in one way. */
  class BrokenGate extends FenceGate {
    readonly #marks = new Map<string, number>();

    constructor(
      private readonly wall: () => number,
      private readonly fault: 'none' | 'no retries' | 'no floor' | 'small floor',
    ) {
      super();
    }

    async retire(): Promise<number> {
      const before = this.#marks.size;
      for (const [resource, fence] of this.#marks) {
        if (fence + KEPT < this.wall() * 1_000) this.#marks.delete(resource);
      }
      return before - this.#marks.size;
    }

    protected async raise(resource: string, fence: number) {
      const floor = { none: 2, 'no retries': 2, 'no floor': Infinity, 'small floor': 5 }[
        this.fault
      ];
      const mark = this.#marks.get(resource);
      const highest = mark ?? this.wall() * 1_000 - floor * HALF_A_DAY;
      const isStale = this.fault === 'no retries' ? fence <= highest : fence < highest;
      if (isStale) return { highest: Math.max(highest, fence + 1), isFloor: mark === undefined };
      this.#marks.set(resource, fence);
      return { highest: fence };
    }
  }

  it.each(['no retries', 'no floor', 'small floor'] as const)(
    'a gate with %s is found out',
    async (fault) => {
      const { failed } = await fc.check(
        property((wall) => new BrokenGate(wall, fault)),
        { numRuns: 3_000, endOnFailure: true },
      );
      expect(failed).toBe(true);
    },
  );

  it('the same gate without a fault is not', async () => {
    await fc.assert(
      property((wall) => new BrokenGate(wall, 'none')),
      { numRuns: 500 },
    );
  });
});

describe('at once, in the order in which the store accepted them', () => {
  let postgres: PostgresServer;
  let redisServer: RedisServer;
  let pool: Pool;
  let redis: Redis;

  beforeAll(async () => {
    [postgres, redisServer] = await Promise.all([startPostgres(), startRedis()]);
    pool = new Pool({ connectionString: postgres.url, max: 6 });
    redis = new Redis(redisServer.url);
    await pool.query(postgresFenceSql());
    await pool.query('CREATE TABLE journal (at serial, resource text, fence bigint)');
  }, 30_000);

  afterAll(async () => {
    redis.disconnect();
    await Promise.all([pool.end(), postgres.stop(), redisServer.stop()]);
  });

  const memoryJournal = (): Journal => {
    const written = new Map<string, number[]>();
    let back = 0;
    const wall = (): number => Date.now() - back;
    const gate = new MemoryFenceGate({ retention: RETENTION, wall });
    return {
      async write(resource, fence) {
        await gate.admit(resource, fence);
        written.set(resource, [...(written.get(resource) ?? []), fence]);
      },
      async written(resource) {
        return written.get(resource) ?? [];
      },
      async leave(resource, fence) {
        back = Date.now() - fence / 1_000;
        await gate.admit(resource, fence);
        back = 0;
      },
      retire: () => gate.retire(),
    };
  };

  const redisJournal = (): Journal => {
    const gate = new RedisFenceGate(redis, { retention: RETENTION });
    return {
      write: (resource, fence) =>
        gate.run(`return redis.call('RPUSH', KEYS[1], ARGV[1])`, {
          resource,
          keys: [`${resource} journal`],
          args: [fence],
          fence,
        }),
      written: async (resource) =>
        (await redis.lrange(`${resource} journal`, 0, -1)).map((fence) => Number(fence)),
      leave: (resource, fence) =>
        redis.set(`fence:{${resource}}`, fence, 'PXAT', Math.ceil((fence + KEPT) / 1_000)),
      retire: settle,
    };
  };

  const postgresWritten = async (resource: string): Promise<number[]> => {
    const { rows } = await pool.query<{ fence: string }>(
      'SELECT fence FROM journal WHERE resource = $1 ORDER BY at',
      [resource],
    );
    return rows.map(({ fence }) => Number(fence));
  };

  const postgresJournal = (): Journal => {
    const gate = new PostgresFenceGate({ pool, retention: RETENTION });
    return {
      write: (resource, fence) =>
        gate.transaction(
          resource,
          // The number is drawn under the lock of the mark.
          (tx) =>
            tx.query('INSERT INTO journal (resource, fence) VALUES ($1, $2)', [resource, fence]),
          fence,
        ),
      written: postgresWritten,
      leave: (resource, fence) =>
        pool.query('INSERT INTO nestjs_fence VALUES ($1, $2, $3)', [resource, fence, fence + KEPT]),
      retire: () => gate.retire(),
    };
  };

  it.each([
    ['memory', memoryJournal, 1_000],
    ['Redis', redisJournal, 100],
    ['PostgreSQL', postgresJournal, 60],
  ] as const)('in %s they never go down', async (_, journalOf, numRuns) => {
    await fc.assert(acceptedFencesNeverGoDown(journalOf()), { numRuns });
  });

  /** A gate that lacks nothing but the one step: another may write between its question and its write. */
  const inTwoSteps = (
    journal: Journal,
    read: (resource: string) => Promise<number | undefined>,
    write: (resource: string, fence: number) => Promise<unknown>,
  ): Journal => ({
    ...journal,
    async write(resource, fence) {
      const highest = (await read(resource)) ?? Date.now() * 1_000 - KEPT / 2;
      if (fence < highest) throw new StaleFenceException(resource, fence, highest);
      await write(resource, fence);
    },
  });

  const redisInTwoSteps = (): Journal =>
    inTwoSteps(
      redisJournal(),
      async (resource) => Number((await redis.get(`fence:{${resource}}`)) ?? NaN) || undefined,
      (resource, fence) =>
        redis.multi().set(`fence:{${resource}}`, fence).rpush(`${resource} journal`, fence).exec(),
    );

  const postgresInTwoSteps = (): Journal =>
    inTwoSteps(
      postgresJournal(),
      async (resource) => {
        const { rows } = await pool.query<{ fence: string }>(
          'SELECT fence FROM nestjs_fence WHERE resource = $1',
          [resource],
        );
        return rows[0] && Number(rows[0].fence);
      },
      (resource, fence) =>
        pool.query(
          `WITH mark AS (
            INSERT INTO nestjs_fence VALUES ($1, $2, $3) ON CONFLICT (resource) DO UPDATE SET fence = $2, forget_at = $3
          ) INSERT INTO journal (resource, fence) VALUES ($1, $2)`,
          [resource, fence, Math.max(Date.now() * 1_000, fence) + KEPT],
        ),
    );

  it.each([
    ['Redis', redisInTwoSteps],
    ['PostgreSQL', postgresInTwoSteps],
  ] as const)('in %s, a gate that reads and then writes is found out', async (_, journalOf) => {
    const journal = journalOf();
    await fc.assert(acceptedFencesNeverGoDown(journal, { together: 1 }), { numRuns: 20 });
    const { failed } = await fc.check(acceptedFencesNeverGoDown(journal), {
      numRuns: 100,
      endOnFailure: true,
    });
    expect(failed).toBe(true);
  });
});
