/** Scripts of the floors, as short as they can be. */

export const COMPARE_AND_DELETE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** The fence, or 0 minus the milliseconds until the key is free. KEYS: lock, counter. ARGV: token, ttl. */
export const FENCED_ACQUIRE = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end
return 0 - redis.call('PTTL', KEYS[1])`;

/** KEYS: lock. ARGV: token, channel. */
export const RELEASE_AND_TELL = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], '')
return 1`;

/** @param {import('ioredis').Redis} redis */
export async function load(redis, source) {
  const sha = await redis.script('LOAD', source);
  return (keys, ...args) => redis.evalsha(sha, keys.length, ...keys, ...args);
}
