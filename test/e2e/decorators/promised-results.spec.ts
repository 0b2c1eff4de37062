import { Duplex, PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { Injectable, StreamableFile } from '@nestjs/common';
import { lastValueFrom, NEVER, Observable, retry } from 'rxjs';
import { LeaseLostException, LeaseService, WithLease } from 'nestjs-lease';
import { PROMISED_GENERATOR } from '../../../lib/lease.messages.js';
import { startApp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

@Injectable()
class Results {
  attempts = 0;
  rowsRead = 0;

  @WithLease('fails')
  async fails(): Promise<Observable<never>> {
    return new Observable((subscriber) => {
      this.attempts++;
      subscriber.error(new Error('once'));
    });
  }

  @WithLease('never', { ttl: 200 })
  async never(): Promise<Observable<never>> {
    return NEVER;
  }

  @WithLease('rows')
  async rows(): Promise<AsyncGenerator<number>> {
    return this.#rows();
  }

  async *#rows(): AsyncGenerator<number> {
    yield ++this.rowsRead;
  }

  @WithLease('duplex')
  async duplex(): Promise<StreamableFile> {
    const both = new Duplex({
      read() {
        this.push('text');
        this.push(null);
      },
      write: (_chunk, _encoding, done) => done(),
    });
    return new StreamableFile(both as never);
  }
}

async function start(): Promise<{ results: Results; leases: LeaseService }> {
  const app = await startApp({ providers: [Results] });
  return { results: app.get(Results), leases: app.get(LeaseService) };
}

describe('a promise under a lease', () => {
  it('of an Observable does not run it unleased when it is subscribed to again', async () => {
    const { results, leases } = await start();
    const source = await results.fails();
    const again = retry({
      count: 1,
      delay: () => until(() => leases.held().length === 0).then(() => [0]) as never,
    });
    await expect(lastValueFrom(source.pipe(again))).rejects.toBeInstanceOf(LeaseLostException);
    expect(results.attempts).toBe(1);
  });

  it('of an Observable holds its lease until the last who subscribed has left', async () => {
    const { results, leases } = await start();
    const source = await results.never();
    const [first, second] = [source.subscribe(), source.subscribe()];
    first.unsubscribe();
    await new Promise(setImmediate);
    expect(leases.held()).toHaveLength(1);
    second.unsubscribe();
    await until(() => leases.held().length === 0);
  });

  it('of an Observable that nobody subscribes to is given back after a ttl', async () => {
    const { results, leases } = await start();
    await results.never();
    expect(leases.held()).toHaveLength(1);
    await until(() => leases.held().length === 0);
  });

  it('of an async generator is refused, and nothing of it is run', async () => {
    const { results, leases } = await start();
    await expect(results.rows()).rejects.toThrow(new TypeError(PROMISED_GENERATOR()));
    expect([results.rowsRead, leases.held().length]).toEqual([0, 0]);
  });

  it('of a file read from a duplex stream is over when it has been read', async () => {
    const { results, leases } = await start();
    const file = await results.duplex();
    for await (const chunk of file.getStream().pipe(new PassThrough()))
      expect(String(chunk)).toBe('text');
    await until(() => leases.held().length === 0);
  });
});
