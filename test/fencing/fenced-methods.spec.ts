import { Injectable } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { of } from 'rxjs';
import {
  ElectionService,
  Fence,
  Guarded,
  LeaderOnly,
  LeaseService,
  MemoryFenceGate,
  StaleFenceException,
  WithLease,
  type GuardedGate,
} from 'nestjs-lease';
import { CapturingLogger, startApp } from '../support/nest-app.js';
import { until } from '../support/until.js';

const gate = new MemoryFenceGate();
const GATE = Symbol('gate');

@Injectable()
class Books {
  @WithLease('books', { fenced: gate })
  async close(@Guarded() ledger?: GuardedGate, @Fence() fence?: number): Promise<number> {
    await ledger!.admit('ledger');
    return fence!;
  }

  @WithLease('by-token', { fenced: GATE })
  async byToken(@Guarded() ledger?: GuardedGate): Promise<void> {
    await ledger!.admit('by-token');
  }

  @WithLease('by-class', { fenced: MemoryFenceGate })
  async byClass(@Guarded() ledger?: GuardedGate): Promise<void> {
    await ledger!.admit('by-class');
  }

  @WithLease('forgetful', { fenced: gate })
  async forgets(): Promise<string> {
    return 'wrote elsewhere';
  }

  @WithLease('streaming', { fenced: gate })
  async streams() {
    return of(1);
  }

  @LeaderOnly('outbox', { fenced: gate })
  async dispatch(@Guarded() outbox?: GuardedGate, @Fence() fence?: number): Promise<number> {
    await outbox!.admit('outbox');
    return fence!;
  }
}

async function start(logger = new CapturingLogger()) {
  const app = await startApp({
    logger,
    providers: [Books, MemoryFenceGate, { provide: GATE, useValue: gate }],
  });
  return { app, books: app.get(Books), logger };
}

describe('a method with a gate', () => {
  it('writes under the fence of its lease', async () => {
    const { books } = await start();
    const first = await books.close();
    const second = await books.close();
    expect(second).toBeGreaterThan(first);
    await expect(gate.admit('ledger', first)).rejects.toMatchObject({ highest: second });
  });

  it('gets it by what a module provides it by', async () => {
    const { books } = await start();
    await books.byToken();
    await books.byClass();
    await expect(gate.admit('by-token', 1)).rejects.toBeInstanceOf(StaleFenceException);
  });

  it('writes under the fence of its leadership', async () => {
    const { app, books } = await start();
    await until(() => app.get(ElectionService).leadership('outbox').isLeader);
    const fence = await books.dispatch();
    await expect(gate.admit('outbox', fence - 1)).rejects.toMatchObject({ highest: fence });
  });

  it('that ends without having asked it is warned of, once', async () => {
    const { books, logger } = await start();
    expect(await books.forgets()).toBe('wrote elsewhere');
    await books.forgets();
    await books.streams();
    const warnings = logger.of('warn').filter((line) => String(line).includes('through its gate'));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('Books.forgets');
  });
});

it('a gate that cannot be used leaves no lease behind', async () => {
  class Broken extends MemoryFenceGate {
    override under(): never {
      throw new Error('no handle');
    }
  }
  const broken = new Broken();
  @Injectable()
  class Prices {
    @WithLease('prices', { fenced: broken })
    async refresh(): Promise<void> {}
  }
  const app = await startApp({ providers: [Prices] });
  await expect(app.get(Prices).refresh()).rejects.toThrow('no handle');
  expect(app.get(LeaseService).held()).toEqual([]);
});

describe('what could never work is told at start', () => {
  const starting = (provider: new () => object) => startApp({ providers: [provider] });

  it('a gate that nobody provides', async () => {
    class A {
      @WithLease('a', { fenced: 'NO_GATE' })
      async run(): Promise<void> {}
    }
    await expect(starting(A)).rejects.toThrow(
      'A.run is to be guarded by the gate NO_GATE, and no module of the application provides one',
    );
  });

  it('a provider that is no gate', async () => {
    class B {
      @WithLease('b', { fenced: 'OTHER' })
      async run(): Promise<void> {}
    }
    await expect(startApp({ providers: [B, { provide: 'OTHER', useValue: {} }] })).rejects.toThrow(
      'OTHER, which is no FenceGate',
    );
  });

  it('@Guarded() without a gate', async () => {
    class C {
      @WithLease('c')
      async run(@Guarded() _gate?: GuardedGate): Promise<void> {}
    }
    await expect(starting(C)).rejects.toThrow('@Guarded() is used on C.run');
  });

  it('@Guarded() without a lease', async () => {
    class D {
      async run(@Guarded() _gate?: GuardedGate): Promise<void> {}
    }
    await expect(starting(D)).rejects.toThrow('@Guarded()');
  });

  it('to run without a lease what is to be fenced', () => {
    expect(() => {
      class E {
        @WithLease('e', { fenced: gate, onUnavailable: 'run' })
        async run(): Promise<void> {}
      }
      return E;
    }).toThrow(`"onUnavailable" cannot be 'run'`);
  });
});
