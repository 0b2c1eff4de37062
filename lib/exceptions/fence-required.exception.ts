import { HttpStatus } from '@nestjs/common';
import { LeaseException } from './lease.exception.js';

/**
 * 428 `FENCE_REQUIRED`: a call came without a fence to a handler that requires one.
 *
 * @publicApi
 */
export class FenceRequiredException extends LeaseException {
  constructor(message: string, key = '') {
    super(HttpStatus.PRECONDITION_REQUIRED, 'FENCE_REQUIRED', key, message);
  }
}
