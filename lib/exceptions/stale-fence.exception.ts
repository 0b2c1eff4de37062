import { HttpStatus } from '@nestjs/common';
import { STALE_FENCE } from '../lease.messages.js';
import { LeaseException } from './lease.exception.js';

/**
 * 409 `STALE_FENCE`: a write came with a fence below one that the resource has already seen. For the storage
 * side of a write to throw.
 *
 * @publicApi
 */
export class StaleFenceException extends LeaseException {
  constructor(
    readonly resource: string,
    readonly fence: number,
    readonly highest: number,
  ) {
    super(
      HttpStatus.CONFLICT,
      'STALE_FENCE',
      resource,
      STALE_FENCE(resource, fence, highest),
      undefined,
      undefined,
      { fence, highest },
    );
  }
}
