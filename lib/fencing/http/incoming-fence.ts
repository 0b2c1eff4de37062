import { BadFenceException } from '../../exceptions/bad-fence.exception.js';
import { UntrustedFenceException } from '../../exceptions/untrusted-fence.exception.js';
import {
  FENCE_AHEAD,
  FENCE_MALFORMED,
  FENCE_NOT_SIGNED,
  FENCE_WRONGLY_SIGNED,
} from '../../lease.messages.js';
import { assertKey } from '../../lease/key.js';
import type { KeyFence } from '../../lease/lease-scope.js';
import { FENCE_HEADERS, FENCE_PROPERTY } from './fence-headers.js';
import { isSigned } from './fence-signature.js';

/** What came, before anything of it is believed. */
interface Given {
  readonly key: unknown;
  readonly fence: unknown;
  readonly signature: unknown;
}

/** The fence of a request, or nothing when there is none at all. Names what is wrong with one that is none. */
export function fenceOfHeaders(headers: Readonly<Record<string, unknown>>): Given | undefined {
  const key = headers[FENCE_HEADERS.key];
  const fence = headers[FENCE_HEADERS.fence];
  const signature = headers[FENCE_HEADERS.signature];
  if (key === undefined && fence === undefined && signature === undefined) return undefined;
  // Node joins a header that came twice by a comma, which none of them has when it came once.
  if (typeof fence !== 'string' || !/^[1-9]\d{0,15}$/.test(fence)) {
    throw new BadFenceException(FENCE_MALFORMED(FENCE_HEADERS.fence));
  }
  if (typeof signature === 'string' && signature.includes(',')) {
    throw new BadFenceException(FENCE_MALFORMED(FENCE_HEADERS.signature));
  }
  return { key: decoded(key), fence: Number(fence), signature };
}

export function fenceOfMessage(data: unknown): Given | undefined {
  const given = (data as { [FENCE_PROPERTY]?: unknown } | null | undefined)?.[FENCE_PROPERTY];
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null) {
    throw new BadFenceException(FENCE_MALFORMED(FENCE_PROPERTY));
  }
  const { key, fence, signature } = given as Partial<Given>;
  return { key, fence, signature };
}

function decoded(key: unknown): unknown {
  try {
    const text = decodeURIComponent(key as string);
    // One key is written in one way: else two that are told apart here could meet elsewhere.
    return encodeURIComponent(text) === key ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Believes it, or says why not. */
export function provenFence(
  { key, fence, signature }: Given,
  trust: { readonly secrets: readonly string[] | undefined; readonly ahead: number },
): KeyFence {
  if (!isKey(key)) throw new BadFenceException(FENCE_MALFORMED(FENCE_HEADERS.key));
  if (typeof fence !== 'number' || !Number.isSafeInteger(fence) || fence < 1) {
    throw new BadFenceException(FENCE_MALFORMED(FENCE_HEADERS.fence), key);
  }
  if (trust.secrets !== undefined) {
    if (signature === undefined) throw new UntrustedFenceException(FENCE_NOT_SIGNED(key), key);
    if (typeof signature !== 'string' || !isSigned(signature, trust.secrets, key, fence)) {
      throw new UntrustedFenceException(FENCE_WRONGLY_SIGNED(key), key);
    }
  }
  if (fence > (Date.now() + trust.ahead) * 1_000) {
    throw new BadFenceException(FENCE_AHEAD(key, fence), key);
  }
  return { key, fence };
}

function isKey(key: unknown): key is string {
  try {
    assertKey(key);
    return true;
  } catch {
    return false;
  }
}
