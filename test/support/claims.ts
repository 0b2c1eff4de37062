import { randomUUID } from 'node:crypto';
import type { Claim, Grant, LeaseStore } from '../../lib/stores/lease-store.js';

/** A claim with a token of its own, for who talks to a store directly. */
export function claimOf(key: string, claim: Partial<Claim> = {}): Claim {
  return {
    key,
    token: randomUUID(),
    ttl: 10_000,
    permits: 1,
    instance: 'test',
    patience: 2_000,
    ...claim,
  };
}

/** Takes a free key. */
export async function take(
  store: LeaseStore,
  key: string,
  options?: Partial<Claim>,
): Promise<Claim & Grant> {
  const claim = claimOf(key, options);
  const answer = await store.acquire(claim);
  if (!answer.granted) throw new Error(`${key} was refused: ${answer.reason}`);
  return { ...claim, ...answer };
}
