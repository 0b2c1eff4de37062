import { fenceHeaders, isUnderLease, type FenceHeaderOptions } from './fence-headers.js';

/** @publicApi */
export interface FencedClientOptions extends FenceHeaderOptions {
  /**
   * Whether a call outside of any lease is an error; else it is sent without a fence.
   * @default true
   */
  required?: boolean;
}

function headersFor({ required = true, ...options }: FencedClientOptions): Record<string, string> {
  return required || options.fence !== undefined || isUnderLease() ? fenceHeaders(options) : {};
}

/**
 * A `fetch` whose calls carry the fence of the lease they are made under.
 *
 * @example
 * ```ts
 * const fetchFenced = fencedFetch();
 * await fetchFenced('http://ledger/months/2026-11/close', { method: 'POST' });
 * ```
 * @publicApi
 */
export function fencedFetch(
  send: typeof fetch = fetch,
  options: FencedClientOptions = {},
): typeof fetch {
  return async (input, init) => {
    const theirs = init?.headers ?? (input instanceof Request ? input.headers : undefined);
    const headers = new Headers(theirs);
    for (const [name, value] of Object.entries(headersFor(options))) headers.set(name, value);
    return await send(input, { ...init, headers });
  };
}

/** As much of axios as is needed, in whatever version. @publicApi */
export interface AxiosLike {
  readonly interceptors: {
    readonly request: {
      // oxlint-disable-next-line typescript/no-explicit-any
      use(intercept: (config: any) => any): number;
      eject(id: number): void;
    };
  };
}

/**
 * Has every call of an axios instance, or of Nest's `HttpService`, carry the fence of the lease it is made under.
 * Returns what ends that.
 *
 * @example
 * ```ts
 * constructor(private readonly http: HttpService) {
 *   fenceHttp(http);
 * }
 * ```
 * @publicApi
 */
export function fenceHttp(
  http: AxiosLike | { readonly axiosRef: AxiosLike },
  options: FencedClientOptions = {},
): () => void {
  const { request } = ('axiosRef' in http ? http.axiosRef : http).interceptors;
  const id = request.use((config: { headers: { set(headers: object): unknown } }) => {
    config.headers.set(headersFor(options));
    return config;
  });
  return () => request.eject(id);
}
