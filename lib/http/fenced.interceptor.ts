import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { from, mergeMap, Observable } from 'rxjs';
import { FencedCalls } from './fenced-calls.js';

/** Lets a call in under the fence it came with: what `@Fenced()` does. */
@Injectable()
export class FencedInterceptor implements NestInterceptor {
  constructor(private readonly calls: FencedCalls) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return from(this.calls.enter(context)).pipe(
      mergeMap((inside) =>
        inside === undefined
          ? next.handle()
          : // Nest remembers the async context in which it is asked for the handler.
            new Observable((subscriber) => inside(() => next.handle().subscribe(subscriber))),
      ),
    );
  }
}
