import { HttpStatus } from '@nestjs/common';
import { LEASE_HELD } from '../lease.messages.js';
import { LeaseException } from './lease.exception.js';

/**
 * 409 `LEASE_HELD`: somebody else holds the key.
 *
 * @publicApi
 */
export class LeaseHeldException extends LeaseException {
  constructor(key: string, retryAfterMs?: number) {
    const wait = retryAfterMs === undefined ? undefined : Math.max(0, Math.ceil(retryAfterMs));
    super(HttpStatus.CONFLICT, 'LEASE_HELD', key, LEASE_HELD(key, wait), wait);
  }
}
