import { HttpStatus } from '@nestjs/common';
import { LeaseException } from './lease.exception.js';

/**
 * 403 `FENCE_NOT_TRUSTED`: a fence came without a signature, or with one that no secret of this service made.
 *
 * @publicApi
 */
export class UntrustedFenceException extends LeaseException {
  constructor(message: string, key = '') {
    super(HttpStatus.FORBIDDEN, 'FENCE_NOT_TRUSTED', key, message);
  }
}
