import { HttpStatus } from '@nestjs/common';
import { LEASE_DONE } from '../lease.messages.js';
import { LeaseException } from './lease.exception.js';

/**
 * 409 `LEASE_DONE`: the unit of work named by `once` was done already.
 *
 * @publicApi
 */
export class LeaseDoneException extends LeaseException {
  constructor(
    key: string,
    readonly once: string,
  ) {
    super(HttpStatus.CONFLICT, 'LEASE_DONE', key, LEASE_DONE(key, once), undefined, undefined, {
      once,
    });
  }
}
