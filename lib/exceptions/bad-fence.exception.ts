import { HttpStatus } from '@nestjs/common';
import { LeaseException } from './lease.exception.js';

/**
 * 400 `BAD_FENCE`: a fence came that is none: malformed, without its key, of another key, or far ahead of the clock.
 *
 * @publicApi
 */
export class BadFenceException extends LeaseException {
  constructor(message: string, key = '') {
    super(HttpStatus.BAD_REQUEST, 'BAD_FENCE', key, message);
  }
}
