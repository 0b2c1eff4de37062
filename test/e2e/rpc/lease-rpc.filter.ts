import { Catch, type RpcExceptionFilter } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import { LeaseException } from 'nestjs-lease';

/** The client sees what an HTTP client would: statusCode, code, message, key, retryAfterMs. */
@Catch(LeaseException)
export class LeaseRpcFilter implements RpcExceptionFilter<LeaseException> {
  catch(exception: LeaseException): Observable<never> {
    return throwError(() => exception.getResponse());
  }
}
