import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { catchError, type Observable } from 'rxjs';
import { LeaseException } from '../exceptions/lease.exception.js';

/**
 * Puts `Retry-After` on the answer of a refused request, whoever threw the refusal. An interceptor and not a
 * filter: a catch-all filter of the application would take a filter's place, but finds the header already set.
 */
@Injectable()
export class RetryAfterInterceptor implements NestInterceptor {
  constructor(private readonly host: HttpAdapterHost) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'http') return next.handle();
    return next.handle().pipe(
      catchError((error: unknown) => {
        if (error instanceof LeaseException && error.retryAfterMs !== undefined) {
          const seconds = Math.max(1, Math.ceil(error.retryAfterMs / 1_000));
          const response: unknown = context.switchToHttp().getResponse();
          this.host.httpAdapter.setHeader(response, 'Retry-After', String(seconds));
        }
        throw error;
      }),
    );
  }
}
