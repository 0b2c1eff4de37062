import { HttpStatus } from '@nestjs/common';
import { LEASE_LOST } from '../lease.messages.js';
import { LeaseException } from './lease.exception.js';

/**
 * 503 `LEASE_LOST`: the lease ended while it was in use. Also the reason of its aborted signal.
 *
 * @publicApi
 */
export class LeaseLostException extends LeaseException {
  /** @param reason - why; absent when the lease was released rather than lost */
  constructor(
    key: string,
    readonly reason?: 'expired' | 'taken' | 'suspended' | 'max-hold',
  ) {
    super(HttpStatus.SERVICE_UNAVAILABLE, 'LEASE_LOST', key, LEASE_LOST(key, reason));
  }
}
