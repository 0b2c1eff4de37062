import { HttpStatus } from '@nestjs/common';
import { LEASE_STORE_UNAVAILABLE, NOT_GRANTED_CLOSING } from '../lease.messages.js';
import { LeaseException } from './lease.exception.js';

/**
 * 503 `LEASE_STORE_UNAVAILABLE`: the store did not say whether the key is free. `cause` has what it said instead.
 *
 * @publicApi
 */
export class LeaseUnavailableException extends LeaseException {
  constructor(key: string, store: string, cause?: unknown, isShuttingDown = false) {
    super(
      HttpStatus.SERVICE_UNAVAILABLE,
      'LEASE_STORE_UNAVAILABLE',
      key,
      isShuttingDown ? NOT_GRANTED_CLOSING(key) : LEASE_STORE_UNAVAILABLE(key, store),
      undefined,
      cause,
    );
  }
}
