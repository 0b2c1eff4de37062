import { BAD_PAYLOAD, FENCE_WITHOUT_KEY } from '../../lease.messages.js';
import { bearersOfContext } from '../../lease/lease-scope.js';
import { findFence, type FenceSource } from '../fence-source.js';
import { signFence } from './fence-signature.js';
import { signerOf } from './fencing-options.js';

/** The names of the headers that carry a fence. */
export const FENCE_HEADERS = {
  key: 'lease-key',
  fence: 'lease-fence',
  signature: 'lease-signature',
} as const;

/** The property of a message that carries a fence. */
export const FENCE_PROPERTY = 'leaseFence';

/** A fence on its way to another service. @publicApi */
export interface SentFence {
  readonly key: string;
  readonly fence: number;
  /** Absent where the sender has no secret: for handlers that are declared internal. */
  readonly signature?: string;
}

/** @publicApi */
export interface FenceHeaderOptions {
  /** @default that of the lease this code runs under */
  fence?: FenceSource;
  /** @default the first of the module's `fencing.secrets` */
  secret?: string;
}

/**
 * The key and the fence of the lease this code runs under, as headers for a call to a service that checks them.
 *
 * @example
 * ```ts
 * await fetch('http://ledger/months/2026-11/close', { method: 'POST', headers: { ...fenceHeaders() } });
 * ```
 * @publicApi
 */
export function fenceHeaders(options: FenceHeaderOptions = {}): Record<string, string> {
  const { key, fence, signature } = toSend(options);
  return {
    // A header is ASCII; a key is any text.
    [FENCE_HEADERS.key]: encodeURIComponent(key),
    [FENCE_HEADERS.fence]: String(fence),
    ...(signature === undefined ? {} : { [FENCE_HEADERS.signature]: signature }),
  };
}

/**
 * The same for a message of a microservice, on any transport: the data with the fence in its property `leaseFence`.
 *
 * @example
 * ```ts
 * client.send('ledger.close', fencePayload({ month: '2026-11' }));
 * ```
 * @publicApi
 */
export function fencePayload<Data extends object>(
  data: Data,
  options: FenceHeaderOptions = {},
): Data & { readonly leaseFence: SentFence } {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new TypeError(BAD_PAYLOAD(data));
  }
  return { ...data, [FENCE_PROPERTY]: toSend(options) };
}

function toSend({ fence: source, secret }: FenceHeaderOptions): SentFence {
  const { key, fence, events } = findFence(source, 'A fenced call');
  if (key === undefined) throw new TypeError(FENCE_WITHOUT_KEY());
  const signer = secret ?? signerOf(events);
  return signer === undefined
    ? { key, fence }
    : { key, fence, signature: signFence(signer, key, fence) };
}

/** Whether there is anything to send. */
export const isUnderLease = (): boolean => !bearersOfContext()[Symbol.iterator]().next().done;
