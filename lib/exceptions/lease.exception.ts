import { HttpException, type HttpStatus } from '@nestjs/common';

/**
 * What every exception of this library is: an HTTP answer with a stable `code`, the key, and when to try again.
 *
 * @publicApi
 */
export abstract class LeaseException extends HttpException {
  protected constructor(
    status: HttpStatus,
    /** Stable: for programs. */
    readonly code: string,
    /** Empty where none is known. */
    readonly key: string,
    message: string,
    /** When to try again, where known. */
    readonly retryAfterMs?: number,
    cause?: unknown,
    extra: Record<string, unknown> = {},
  ) {
    // Nothing about the holder, and nothing of the store's own words, leaves by HTTP.
    super(
      {
        statusCode: status,
        code,
        message,
        ...(key === '' ? {} : { key }),
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
        ...extra,
      },
      status,
      cause === undefined ? undefined : { cause },
    );
  }
}
