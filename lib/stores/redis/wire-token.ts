/**
 * An owner token as it is written in Redis, where it stands between spaces in a record, in a line and in what is
 * told, and beside `kept:…` among permits. Ours are written as they are; a user's own may hold anything.
 */
export const wireToken = (token: string): string =>
  token === '' || /[\s%:]/.test(token) ? `%${Buffer.from(token).toString('base64url')}` : token;

export const readToken = (wire: string): string =>
  wire.startsWith('%') ? Buffer.from(wire.slice(1), 'base64url').toString() : wire;
