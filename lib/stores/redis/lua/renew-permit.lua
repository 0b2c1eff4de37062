-- Prolongs a permit. Never shortens, never re-creates, never takes (rule 5).
--
-- KEYS[1] the lease   KEYS[2] its permits   KEYS[3] their holders
-- ARGV[1] owner token   ARGV[2] ttl, ms
--
-- Returns { now, outcome }: 1 renewed, 0 not this token's any more
--@ include clock
--@ include record
--@ include permits
local till = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1])) or 0
local record = redis.call('GET', KEYS[1])
-- Who has the key alone got it when the permits were over, whatever the clock says now.
if till <= now or untilOf(record) > now then
  return { now, 0 }
end
local ttl = tonumber(ARGV[2])
till = math.max(till, now + ttl)
redis.call('ZADD', KEYS[2], till, ARGV[1])
local shared = math.max(till, sharedOf(record))
local longest = math.max(outlive(ttl), shared - now)
share(KEYS[1], record, record and string.sub(record, 1, 16) or stamp, shared, ttl)
redis.call('PEXPIRE', KEYS[2], longest)
redis.call('PEXPIRE', KEYS[3], longest)
return { now, 1 }
