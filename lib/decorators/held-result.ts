import { AsyncLocalStorage } from 'node:async_hooks';
import { finished, type Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';
import { isObservable, Observable } from 'rxjs';
import { PROMISED_GENERATOR } from '../lease.messages.js';
import type { Lease } from '../lease/lease.js';

/**
 * Takes the lease and runs `work` inside it; `invoke` calls the method itself. The lease is held until the work's
 * promise settles.
 */
export type RunLeased = (
  work: (lease: Lease | undefined, invoke: () => unknown) => Promise<unknown>,
) => Promise<unknown>;

/** A promise that others settle. */
function deferred<T = void>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/**
 * A result that is a stream of some kind: the caller gets it at once, and the lease is held until it is over. Nothing
 * for a result that is all there.
 */
export function keepStream(
  result: unknown,
  lease: Lease | undefined,
): { readonly result: unknown; readonly over: Promise<void> } | undefined {
  if (isObservable(result)) {
    const over = deferred();
    // One that nobody subscribes to would be held for ever.
    const unclaimed = setTimeout(() => over.resolve(), lease?.ttl ?? 0).unref();
    const followed = follow(result, lease, over, () => clearTimeout(unclaimed));
    return { result: followed, over: over.promise };
  }
  if (isAsyncGenerator(result)) throw new TypeError(PROMISED_GENERATOR());
  if (result instanceof StreamableFile) {
    return { result, over: untilClosed(result.getStream(), lease) };
  }
  return undefined;
}

/** The same where `run` cannot let go of a result before it is over. */
export function holdStream(
  run: (work: (lease: Lease | undefined) => Promise<unknown>) => Promise<unknown>,
  work: (lease: Lease | undefined) => unknown,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    run(async (lease) => {
      const result = await work(lease);
      const kept = keepStream(result, lease);
      if (kept !== undefined) {
        resolve(kept.result);
        await kept.over;
      }
      return result;
    }).then(resolve, reject);
  });
}

const isAsyncGenerator = (value: unknown): boolean =>
  Object.prototype.toString.call(value) === '[object AsyncGenerator]';

/** An Observable that takes the lease when it is subscribed to, and gives it back when it is over. */
export function holdObservable(run: RunLeased): Observable<unknown> {
  return new Observable((subscriber) => {
    const over = deferred();
    const running = run(async (lease, invoke) => {
      const returned: unknown = await (invoke() as Promise<unknown>);
      if (!isObservable(returned) || subscriber.closed) return;
      // A subscriber that has enough at the first value is closed before this has a subscription to add.
      subscriber.add(
        follow(returned, lease, over).subscribe({
          next: (value) => subscriber.next(value),
          // Told below, when the lease has been given back.
          error: () => {},
        }),
      );
      await over.promise;
    });
    running.then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
  });
}

/** The same values in the lease's context; errs when the lease is lost; tells `over` how it ended. */
function follow(
  source: Observable<unknown>,
  lease: Lease | undefined,
  over: { resolve: () => void; reject: (error: unknown) => void },
  onSubscribed: () => void = () => {},
): Observable<unknown> {
  const inScope = AsyncLocalStorage.snapshot();
  let subscriptions = 0;
  return new Observable((subscriber) => {
    const onLost = (): void => fail(lease!.signal.reason);
    const fail = (error: unknown): void => {
      over.reject(error);
      subscriber.error(error);
    };
    // Subscribed to once more, after it was given back: the source is not run unleased.
    if (lease?.isHeld === false && !lease.signal.aborted) {
      return fail(lease.holdings[0]!.lostException());
    }
    if (lease?.signal.aborted) return onLost();
    subscriptions++;
    onSubscribed();
    lease?.signal.addEventListener('abort', onLost, { once: true });
    subscriber.add(() => {
      lease?.signal.removeEventListener('abort', onLost);
      if (--subscriptions === 0) over.resolve();
    });
    subscriber.add(
      inScope(() =>
        source.subscribe({
          next: (value) => subscriber.next(value),
          error: fail,
          complete: () => subscriber.complete(),
        }),
      ),
    );
    return undefined;
  });
}

/** Until the stream is closed, however it ends; a lost lease ends it. */
function untilClosed(stream: Readable, lease: Lease | undefined): Promise<void> {
  const { promise, resolve, reject } = deferred();
  const onLost = (): void => void stream.destroy(lease!.signal.reason as Error);
  if (lease?.signal.aborted) onLost();
  else lease?.signal.addEventListener('abort', onLost, { once: true });
  finished(stream, { writable: false }, (error) => {
    lease?.signal.removeEventListener('abort', onLost);
    if (error) reject(error);
    else resolve();
  });
  return promise;
}

/** A method's generator, and the way to do something to it inside its lease. */
interface OpenGenerator {
  readonly iterator: AsyncGenerator<unknown, unknown, unknown>;
  readonly lease: Lease | undefined;
  readonly inScope: <T>(act: () => T) => T;
}

/** An async generator that takes the lease at its first step and gives it back after its last. */
export async function* holdGenerator(run: RunLeased): AsyncGenerator<unknown, unknown, unknown> {
  const opened = deferred<OpenGenerator | undefined>();
  const over = deferred();
  const running = run(async (lease, invoke) => {
    const iterator = invoke() as OpenGenerator['iterator'];
    opened.resolve({ iterator, lease, inScope: AsyncLocalStorage.snapshot() });
    await over.promise;
  });
  running.then(
    () => opened.resolve(undefined),
    (error: unknown) => opened.reject(error),
  );
  const started = await opened.promise;
  // Skipped: nothing to yield.
  if (started === undefined) return undefined;
  const { iterator, lease, inScope } = started;
  let end = (): void => over.resolve();
  const fail = (error: unknown): never => {
    end = () => over.reject(error);
    throw error;
  };
  try {
    let step = (): Promise<IteratorResult<unknown>> => iterator.next();
    for (;;) {
      lease?.assertHeld();
      const { done, value } = await inScope(step);
      if (done) {
        over.resolve();
        await running;
        return value;
      }
      try {
        const sent: unknown = yield value;
        step = () => iterator.next(sent);
      } catch (error) {
        step = () => iterator.throw(error);
      }
    }
  } catch (error) {
    return fail(error);
  } finally {
    // Its own clean-up is still work under the lease, which is given back last (rule 11).
    try {
      await inScope(() => iterator.return(undefined)).catch(fail);
    } finally {
      end();
      await running.catch(() => {});
    }
  }
}
