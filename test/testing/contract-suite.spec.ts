import { describe, expect, it } from '@jest/globals';
import { describeLeaseStore } from '../../lib/testing/index.js';
import { NO_TEST_RUNNER } from '../../lib/lease.messages.js';
import { MemoryLeaseStore } from '../../lib/stores/memory/memory-lease-store.js';
import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../../lib/stores/lease-store.js';

/** The names of the clauses that a store breaks. */
async function brokenClauses(factory: () => LeaseStore): Promise<string[]> {
  const clauses: { name: string; test: () => Promise<void> }[] = [];
  describeLeaseStore('a store', factory, {
    describe: (_, suite) => suite(),
    it: (name, test) => clauses.push({ name, test }),
  });
  const broken = await Promise.all(
    clauses.map(({ name, test }) =>
      test().then(
        () => [],
        () => [name],
      ),
    ),
  );
  return broken.flat();
}

/** A store that keeps the contract, for others to break it. */
class Sound implements LeaseStore {
  readonly name = 'broken';
  protected readonly inner = new MemoryLeaseStore();

  get limits(): LeaseStore['limits'] {
    return this.inner.limits;
  }
  acquire(claim: Claim): Promise<Grant | Refusal> {
    return this.inner.acquire(claim);
  }
  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    return this.inner.renew(holds);
  }
  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    return this.inner.release(hold, how);
  }
  watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    return this.inner.watch(key, onFree);
  }
  inspect(key: string): Promise<LeaseRecord | null> {
    return this.inner.inspect(key);
  }
  list(options?: { readonly prefix?: string }): AsyncIterable<LeaseRecord> {
    return this.inner.list(options);
  }
  close(): Promise<void> {
    return this.inner.close();
  }
}

const granted = (answer: Grant | Refusal): answer is Grant => answer.granted;

class NoTokenCheck extends Sound {
  readonly #holders = new Map<string, Hold>();

  override async acquire(claim: Claim): Promise<Grant | Refusal> {
    const answer = await super.acquire(claim);
    if (answer.granted) this.#holders.set(claim.key, claim);
    return answer;
  }
  override release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    return super.release(this.#holders.get(hold.key) ?? hold, how);
  }
}

class RenewCreates extends Sound {
  override async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    for (const hold of holds) await super.acquire({ ...hold, instance: 'i', patience: 1_000 });
    return super.renew(holds);
  }
}

class RenewShortens extends Sound {
  override async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    for (const hold of holds) {
      if ((await this.inner.renew([hold]))[0] !== 'renewed') continue;
      const record = await this.inner.inspect(hold.key);
      if (record!.freeInMs <= hold.ttl) continue;
      await this.inner.release(hold, {});
      await this.inner.acquire({ ...hold, instance: 'i', patience: 1_000 });
    }
    return this.inner.renew(holds);
  }
}

class FenceResets extends Sound {
  readonly #fences = new Map<string, number>();

  override async acquire(claim: Claim): Promise<Grant | Refusal> {
    const answer = await super.acquire(claim);
    if (!granted(answer)) return answer;
    const fence = (this.#fences.get(claim.key) ?? 0) + 1;
    this.#fences.set(claim.key, fence);
    return { granted: true, fence };
  }
  override release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    this.#fences.delete(hold.key);
    return super.release(hold, how);
  }
}

class FenceSpentOnRefusal extends Sound {
  readonly #spent = new Map<string, number>();

  override async acquire(claim: Claim): Promise<Grant | Refusal> {
    const answer = await super.acquire(claim);
    if (!answer.granted) this.#spent.set(claim.key, (this.#spent.get(claim.key) ?? 0) + 1);
    return answer;
  }
  override async inspect(key: string): Promise<LeaseRecord | null> {
    const record = await super.inspect(key);
    const spent = this.#spent.get(key) ?? 0;
    return (
      record && {
        ...record,
        holders: record.holders.map((one) => ({ ...one, fence: one.fence + spent })),
      }
    );
  }
}

class PermitsOffByOne extends Sound {
  override acquire(claim: Claim): Promise<Grant | Refusal> {
    const permits = claim.permits > 1 ? claim.permits + 1 : 1;
    return super.acquire({ ...claim, permits });
  }
}

class ReadsThenWrites extends Sound {
  override async acquire(claim: Claim): Promise<Grant | Refusal> {
    const record = await super.inspect(claim.key);
    await new Promise((resolve) => setImmediate(resolve));
    if (record === null && claim.permits === 1) {
      for (const { owner } of (await super.inspect(claim.key))?.holders ?? []) {
        if (!claim.token.startsWith(owner)) return { granted: true, fence: Date.now() * 1_000 };
      }
    }
    return super.acquire(claim);
  }
}

class NewFenceForTheSameToken extends Sound {
  override async acquire(claim: Claim): Promise<Grant | Refusal> {
    const answer = await super.acquire(claim);
    return granted(answer) ? { granted: true, fence: Date.now() * 1_000 + this.#more++ } : answer;
  }
  #more = 0;
}

class NeverSaysHowLong extends Sound {
  override async acquire(claim: Claim): Promise<Grant | Refusal> {
    const answer = await super.acquire(claim);
    return answer.granted ? answer : { granted: false, reason: answer.reason };
  }
}

class ForgetsWhatIsDone extends Sound {
  override release(hold: Hold, { keepFor = 0 }: ReleaseHow): Promise<boolean> {
    return super.release(hold, { keepFor });
  }
}

class FreesAtOnce extends Sound {
  override release(hold: Hold, { keepFor: _, ...how }: ReleaseHow): Promise<boolean> {
    return super.release(hold, how);
  }
}

class ShowsTokens extends Sound {
  readonly #tokens = new Map<string, string>();

  override acquire(claim: Claim): Promise<Grant | Refusal> {
    this.#tokens.set(claim.key, claim.token);
    return super.acquire(claim);
  }
  override async inspect(key: string): Promise<LeaseRecord | null> {
    const record = await super.inspect(key);
    const owner = this.#tokens.get(key) ?? '';
    return record && { ...record, holders: record.holders.map((one) => ({ ...one, owner })) };
  }
}

class CapsItsTtl extends Sound {
  override acquire(claim: Claim): Promise<Grant | Refusal> {
    return super.acquire({ ...claim, ttl: Math.min(claim.ttl, 3_600_000) });
  }
}

class FoldsCase extends Sound {
  override acquire(claim: Claim): Promise<Grant | Refusal> {
    return super.acquire({ ...claim, key: claim.key.trimEnd() });
  }
}

class SaysNothingOfReleases extends Sound {
  override async watch(): Promise<() => Promise<void>> {
    return async () => {};
  }
}

/** As on a machine that stands still at times: a short ttl is over before anybody could do anything with it. */
class StandsStill extends Sound {
  override async acquire(claim: Claim): Promise<Grant | Refusal> {
    const answer = await super.acquire(claim);
    const until = performance.now() + 1.5 * claim.ttl;
    if (claim.ttl <= SHORT_TTL) while (performance.now() < until);
    return answer;
  }
}
const SHORT_TTL = 100;

describe('The contract suite', () => {
  it('finds nothing wrong with a store that keeps the contract', async () => {
    expect(await brokenClauses(() => new Sound())).toEqual([]);
  });

  it('does not blame the store for a machine that stands still', async () => {
    expect(await brokenClauses(() => new StandsStill())).toEqual([]);
  });

  it.each<[string, () => LeaseStore, string]>([
    [
      'frees whatever the token',
      () => new NoTokenCheck(),
      "never frees somebody else's lease (rule 7)",
    ],
    [
      'creates a key by its renewal',
      () => new RenewCreates(),
      'never creates a key that nobody holds (rule 5)',
    ],
    ['shortens by its renewal', () => new RenewShortens(), 'never shortens (rule 5)'],
    ['begins its fences anew', () => new FenceResets(), 'grow with every grant of a key (rule 8)'],
    [
      'spends fences on refusals',
      () => new FenceSpentOnRefusal(),
      'of a holder are not touched by refused claims (rule 8)',
    ],
    [
      'gives one permit too many',
      () => new PermitsOffByOne(),
      'are given to as many as there are, of 100 that race (rule 1)',
    ],
    [
      'reads and then writes',
      () => new ReadsThenWrites(),
      'grants a free key to one of 100 racing claims (rule 1)',
    ],
    [
      'does not know a claim again',
      () => new NewFenceForTheSameToken(),
      'recognises a claim that comes again: held once, under the same fence (rule 2)',
    ],
    [
      'never says for how long',
      () => new NeverSaysHowLong(),
      'refuses a held key and says how long it can take (rule 9)',
    ],
    [
      'forgets what is done',
      () => new ForgetsWhatIsDone(),
      'are refused as done once a release said so',
    ],
    ['keeps no place', () => new FreesAtOnce(), 'stays taken for that long'],
    [
      'shows owner tokens',
      () => new ShowsTokens(),
      'never shows a whole owner token, permits: 1 (rule 15)',
    ],
    [
      'takes one key for another',
      () => new FoldsCase(),
      'with the parts of another key in them do not meet it',
    ],
    [
      'caps what it says it grants',
      () => new CapsItsTtl(),
      'a ttl of the most that it has is granted, and lasts',
    ],
    [
      'never tells of a release',
      () => new SaysNothingOfReleases(),
      'watching a key tells of its release',
    ],
  ])('fails a store that %s', async (_, factory, clause) => {
    expect(await brokenClauses(factory)).toContain(clause);
  });

  it('asks for a test runner where there is none', () => {
    const globals = globalThis as { describe?: unknown };
    const before = globals.describe;
    delete globals.describe;
    try {
      expect(() => describeLeaseStore('x', () => new Sound())).toThrow(
        new TypeError(NO_TEST_RUNNER()),
      );
    } finally {
      globals.describe = before;
    }
  });
});
