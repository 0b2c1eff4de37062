import { describe, expect, it } from '@jest/globals';
import { HttpException } from '@nestjs/common';
import {
  LeaseDoneException,
  LeaseException,
  LeaseHeldException,
  LeaseLostException,
  LeaseUnavailableException,
  NotLeaderException,
  StaleFenceException,
} from 'nestjs-lease';
import {
  LEASE_DONE,
  LEASE_HELD,
  LEASE_LOST,
  LEASE_STORE_UNAVAILABLE,
  NOT_GRANTED_CLOSING,
  NOT_LEADER,
  STALE_FENCE,
} from '../../../lib/lease.messages.js';

describe('an exception', () => {
  it.each([
    [new LeaseHeldException('k', 1_200.4), 409, 'LEASE_HELD', LEASE_HELD('k', 1_201)],
    [new LeaseHeldException('k'), 409, 'LEASE_HELD', LEASE_HELD('k', undefined)],
    [new LeaseDoneException('k', 'tick'), 409, 'LEASE_DONE', LEASE_DONE('k', 'tick')],
    [new NotLeaderException('k'), 409, 'NOT_LEADER', NOT_LEADER('k')],
    [new StaleFenceException('k', 1, 2), 409, 'STALE_FENCE', STALE_FENCE('k', 1, 2)],
    [new LeaseLostException('k', 'taken'), 503, 'LEASE_LOST', LEASE_LOST('k', 'taken')],
    [new LeaseLostException('k'), 503, 'LEASE_LOST', LEASE_LOST('k', undefined)],
    [
      new LeaseUnavailableException('k', 'Redis'),
      503,
      'LEASE_STORE_UNAVAILABLE',
      LEASE_STORE_UNAVAILABLE('k', 'Redis'),
    ],
    [
      new LeaseUnavailableException('k', 'Redis', new Error('closing'), true),
      503,
      'LEASE_STORE_UNAVAILABLE',
      NOT_GRANTED_CLOSING('k'),
    ],
  ])('is an HttpException with a stable code: %s', (exception, status, code, message) => {
    expect(exception).toBeInstanceOf(HttpException);
    expect(exception).toBeInstanceOf(LeaseException);
    expect(exception.getStatus()).toBe(status);
    expect(exception.message).toBe(message);
    expect(exception).toMatchObject({ code, key: 'k' });
    expect(exception.getResponse()).toMatchObject({ statusCode: status, code, message, key: 'k' });
  });

  it('carries when to try again, in whole milliseconds, up', () => {
    expect(new LeaseHeldException('k', 0.2).retryAfterMs).toBe(1);
    expect(new LeaseHeldException('k', -3).retryAfterMs).toBe(0);
    expect(new LeaseHeldException('k').getResponse()).not.toHaveProperty('retryAfterMs');
  });

  it('keeps what the store said for the log, and out of the answer', () => {
    const cause = new Error('NOPERM of user default');
    const exception = new LeaseUnavailableException('k', 'Redis', cause);
    expect(exception.cause).toBe(cause);
    expect(JSON.stringify(exception.getResponse())).not.toContain('NOPERM');
  });

  it('of a stale fence says both fences', () => {
    const exception = new StaleFenceException('ledger', 1, 2);
    expect(exception.getResponse()).toMatchObject({ fence: 1, highest: 2 });
    expect(exception).toMatchObject({ resource: 'ledger', fence: 1, highest: 2 });
  });
});
