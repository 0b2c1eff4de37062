import { HttpStatus } from '@nestjs/common';
import { NOT_LEADER } from '../lease.messages.js';
import { LeaseException } from './lease.exception.js';

/**
 * 409 `NOT_LEADER`: this instance does not lead the group.
 *
 * @publicApi
 */
export class NotLeaderException extends LeaseException {
  constructor(readonly group: string) {
    super(HttpStatus.CONFLICT, 'NOT_LEADER', group, NOT_LEADER(group));
  }
}
