import { createHmac, timingSafeEqual } from 'node:crypto';

const VERSION = 'v1=';

/** Binds a fence to its key: whoever has the secret has said that this key was granted with this fence. */
export function signFence(secret: string, key: string, fence: number): string {
  return VERSION + digest(secret, key, fence).toString('base64url');
}

/** Whether one of the secrets made it. All are tried, in the time that this takes whichever of them fits. */
export function isSigned(
  signature: string,
  secrets: readonly string[],
  key: string,
  fence: number,
): boolean {
  const given = Buffer.from(signature.slice(VERSION.length), 'base64url');
  let fits = false;
  for (const secret of secrets) {
    const right = digest(secret, key, fence);
    // The length of a digest is no secret.
    if (given.length === right.length && timingSafeEqual(given, right)) fits = true;
  }
  return fits && signature.startsWith(VERSION);
}

const digest = (secret: string, key: string, fence: number): Buffer =>
  createHmac('sha256', secret).update(`nestjs-lease fence\n${fence}\n${key}`).digest();
