import { HttpStatus } from '@nestjs/common';
import { GATE_UNAVAILABLE } from '../lease.messages.js';
import { LeaseException } from './lease.exception.js';

/**
 * 503 `FENCE_GATE_UNAVAILABLE`: the gate of a `@Fenced()` handler did not say whether the fence is stale, and the
 * handler was not called. `cause` has what it said instead.
 *
 * @publicApi
 */
export class FenceGateUnavailableException extends LeaseException {
  constructor(key: string, cause: unknown) {
    super(
      HttpStatus.SERVICE_UNAVAILABLE,
      'FENCE_GATE_UNAVAILABLE',
      key,
      GATE_UNAVAILABLE(key),
      undefined,
      cause,
    );
  }
}
