import { HttpStatus } from '@nestjs/common';
import { FENCE_TOO_OLD, STALE_FENCE } from '../lease.messages.js';
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
    /** The highest that the resource has seen, where that is known. */
    readonly highest?: number,
    /** It has seen none that is remembered, and `highest` is the least that is safe to begin with. */
    isFloor = false,
  ) {
    super(
      HttpStatus.CONFLICT,
      'STALE_FENCE',
      resource,
      isFloor ? FENCE_TOO_OLD(resource, fence) : STALE_FENCE(resource, fence, highest),
      undefined,
      undefined,
      { fence, ...(highest === undefined ? {} : { highest }) },
    );
  }
}
