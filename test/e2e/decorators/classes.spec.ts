import { Inject, Injectable, Scope, type OnModuleInit } from '@nestjs/common';
import { ContextIdFactory } from '@nestjs/core';
import { describe, expect, it } from '@jest/globals';
import {
  CurrentLease,
  Fence,
  LeaderOnly,
  LeaseService,
  MemoryLeaseStore,
  WithLease,
  type Lease,
} from 'nestjs-lease';
import { startApp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

abstract class Report {
  ran: string[] = [];

  @WithLease()
  async write(@CurrentLease() lease?: Lease): Promise<string> {
    this.ran.push('base');
    return lease!.key;
  }

  @WithLease('shared by all reports')
  async send(@CurrentLease() lease?: Lease): Promise<string> {
    return lease!.key;
  }
}

@Injectable()
class Daily extends Report {}

@Injectable()
class Weekly extends Report {}

@Injectable()
class Monthly extends Report {
  override async write(): Promise<string> {
    this.ran.push('unleased override');
    return `override of ${await super.write()}`;
  }
}

@Injectable()
class Yearly extends Report {
  @WithLease('yearly')
  override async write(@CurrentLease() lease?: Lease): Promise<string> {
    return `${lease!.key} over ${await super.write()}`;
  }
}

describe('abstract bases and subclasses', () => {
  const providers = [Daily, Weekly, Monthly, Yearly];

  it('give each subclass its own default key', async () => {
    const app = await startApp({ providers });
    expect(await app.get(Daily).write()).toBe('Daily.write');
    expect(await app.get(Weekly).write()).toBe('Weekly.write');
  });

  it('share a key that the base names', async () => {
    const app = await startApp({ providers });
    await using _ = await app.get(LeaseService).acquire('shared by all reports');
    await expect(app.get(Daily).send()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await expect(app.get(Weekly).send()).rejects.toMatchObject({ code: 'LEASE_HELD' });
  });

  it('lease a base method that an override without a decorator calls', async () => {
    const app = await startApp({ providers });
    expect(await app.get(Monthly).write()).toBe('override of Monthly.write');
    await using _ = await app.get(LeaseService).acquire('Monthly.write');
    await expect(app.get(Monthly).write()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    expect(app.get(Monthly).ran).toEqual(['unleased override', 'base', 'unleased override']);
  });

  it('nest the leases of an override and of its base', async () => {
    const app = await startApp({ providers });
    expect(await app.get(Yearly).write()).toBe('yearly over Yearly.write');
  });

  it('enter the same lease again when an override under the same key calls its base', async () => {
    @Injectable()
    class Again extends Report {
      @WithLease()
      override async write(@CurrentLease() lease?: Lease): Promise<string> {
        return `${lease!.key} again ${await super.write()}`;
      }
    }
    const app = await startApp({ providers: [Again] });
    expect(await app.get(Again).write()).toBe('Again.write again Again.write');
    expect(app.get(LeaseService).held()).toEqual([]);
  });

  it('work for a subclass that brings leased methods of its own and a constructor', async () => {
    @Injectable()
    class Own extends Report implements OnModuleInit {
      constructor(@Inject('NAME') private readonly name: string) {
        super();
      }
      onModuleInit(): void {}
      @WithLease()
      async own(@Fence() fence?: number): Promise<string> {
        return `${this.name} ${typeof fence} ${await this.write()}`;
      }
    }
    const app = await startApp({ providers: [Own, { provide: 'NAME', useValue: 'ada' }] });
    expect(await app.get(Own).own()).toBe('ada number Own.write');
  });

  it('work for a base that is itself a provider', async () => {
    @Injectable()
    class Base {
      @WithLease()
      async run(@CurrentLease() lease?: Lease): Promise<string> {
        return lease!.key;
      }
    }
    @Injectable()
    class Derived extends Base {
      @WithLease()
      async other(@CurrentLease() lease?: Lease): Promise<string> {
        return lease!.key;
      }
    }
    const app = await startApp({ providers: [Base, Derived] });
    expect(await app.get(Base).run()).toBe('Base.run');
    expect(await app.get(Derived).run()).toBe('Derived.run');
    expect(await app.get(Derived).other()).toBe('Derived.other');
  });
});

describe('scopes', () => {
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest {
    @WithLease()
    async run(@CurrentLease() lease?: Lease): Promise<string> {
      return lease!.key;
    }
  }

  @Injectable({ scope: Scope.TRANSIENT })
  class Transient {
    @WithLease()
    async run(@CurrentLease() lease?: Lease): Promise<string> {
      return lease!.key;
    }
  }

  it('a request-scoped class takes its leases', async () => {
    const app = await startApp({ providers: [PerRequest] });
    const one = await app.resolve(PerRequest, ContextIdFactory.create());
    const two = await app.resolve(PerRequest, ContextIdFactory.create());
    expect(one).not.toBe(two);
    expect(await one.run()).toBe('PerRequest.run');
    await using _ = await app.get(LeaseService).acquire('PerRequest.run');
    await expect(two.run()).rejects.toMatchObject({ code: 'LEASE_HELD' });
  });

  it('a transient class takes its leases', async () => {
    const app = await startApp({ providers: [Transient] });
    expect(await (await app.resolve(Transient)).run()).toBe('Transient.run');
  });
});

describe('two applications in one process', () => {
  @Injectable()
  class Job {
    @WithLease('job')
    async run(@CurrentLease() lease?: Lease): Promise<string> {
      return lease!.key;
    }
    @LeaderOnly()
    async lead(): Promise<string> {
      return 'led';
    }
  }

  it('each use their own LeaseModule', async () => {
    const [a, b] = [
      await startApp({ providers: [Job], lease: { instance: 'a' } }),
      await startApp({ providers: [Job], lease: { instance: 'b' } }),
    ];
    await using _ = await a.get(LeaseService).acquire('job');
    await expect(a.get(Job).run()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await expect(b.get(Job).run()).resolves.toBe('job');
  });

  it('exclude each other when they share a store', async () => {
    const store = new MemoryLeaseStore();
    const a = await startApp({ providers: [Job], lease: { store } });
    const b = await startApp({ providers: [Job], lease: { store } });
    await using _ = await a.get(LeaseService).acquire('job');
    await expect(b.get(Job).run()).rejects.toMatchObject({ code: 'LEASE_HELD' });
  });

  it('do not exclude each other in namespaces of their own (rule 14)', async () => {
    const store = new MemoryLeaseStore();
    const a = await startApp({ providers: [Job], lease: { store, namespace: 'a' } });
    const b = await startApp({ providers: [Job], lease: { store, namespace: 'b' } });
    await using _ = await a.get(LeaseService).acquire('job');
    await expect(b.get(Job).run()).resolves.toBe('job');
  });

  it('have one leader when they share a store, and @LeaderOnly runs on that one', async () => {
    const store = new MemoryLeaseStore();
    const a = await startApp({ providers: [Job], lease: { store } });
    const b = await startApp({ providers: [Job], lease: { store } });
    const led = await until(async () => {
      const answers = await Promise.allSettled([a.get(Job).lead(), b.get(Job).lead()]);
      const statuses = answers.map(({ status }) => status).join();
      return statuses.includes('fulfilled') ? statuses : undefined;
    });
    expect(['fulfilled,rejected', 'rejected,fulfilled']).toContain(led);
  });

  it('a closed one does not take the other’s leases with it', async () => {
    const store = new MemoryLeaseStore();
    const a = await startApp({ providers: [Job], lease: { store } });
    const b = await startApp({ providers: [Job], lease: { store } });
    await a.close();
    await expect(b.get(Job).run()).resolves.toBe('job');
    await expect(a.get(Job).run()).rejects.toMatchObject({ code: 'LEASE_STORE_UNAVAILABLE' });
  });
});

describe('methods with unusual names', () => {
  const SECRET = Symbol('secret');

  @Injectable()
  class Unusual {
    @WithLease()
    async [SECRET](@CurrentLease() lease?: Lease): Promise<string> {
      return lease!.key;
    }

    @WithLease()
    async 'kebab-case'(@CurrentLease() lease?: Lease): Promise<string> {
      return lease!.key;
    }

    @WithLease()
    protected async hidden(): Promise<string> {
      return 'hidden';
    }

    callHidden(): Promise<string> {
      return this.hidden();
    }
  }

  it('a symbol', async () => {
    const app = await startApp({ providers: [Unusual] });
    expect(await app.get(Unusual)[SECRET]()).toBe('Unusual.Symbol(secret)');
  });

  it('a name that is no identifier', async () => {
    const app = await startApp({ providers: [Unusual] });
    expect(await app.get(Unusual)['kebab-case']()).toBe('Unusual.kebab-case');
  });

  it('a protected method that the class calls itself', async () => {
    const app = await startApp({ providers: [Unusual] });
    expect(await app.get(Unusual).callHidden()).toBe('hidden');
    await using _ = await app.get(LeaseService).acquire('Unusual.hidden');
    await expect(app.get(Unusual).callHidden()).rejects.toMatchObject({ code: 'LEASE_HELD' });
  });
});
