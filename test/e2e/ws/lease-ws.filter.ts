// oxlint-disable promise/valid-params -- a filter's catch, not a promise's
import { Catch, type ArgumentsHost } from '@nestjs/common';
import { BaseWsExceptionFilter, WsException } from '@nestjs/websockets';
import { LeaseException } from 'nestjs-lease';

/** The client gets an `exception` event with what an HTTP client would see: statusCode, code, message, key, retryAfterMs. */
@Catch(LeaseException)
export class LeaseWsFilter extends BaseWsExceptionFilter {
  override catch(exception: LeaseException, host: ArgumentsHost): void {
    super.catch(new WsException(exception.getResponse()), host);
  }
}
