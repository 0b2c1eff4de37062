-- Takes one of several permits of a key, or says why not. One atomic step (rule 1).
--
-- Holders of permits are members of a sorted set: token, scored by until; `kept:<fence>` for a permit that stays
-- taken after its release. Their fence, since and instance are fields of the lease's hash, named after the token.
-- A holder that has the key alone is respected, and respects the `shared` field.
--
-- KEYS[1] the lease      KEYS[2] its permits
-- KEYS[3] the mark of the unit of work, if the claim has one
-- ARGV[1] owner token    ARGV[2] ttl, ms       ARGV[3] deadline, ms of this server's clock
-- ARGV[4] retention, ms  ARGV[5] instance      ARGV[6] how many may hold it, this claim included
--
-- Returns what acquire.lua returns.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
if now >= tonumber(ARGV[3]) then
  return { 3, now }
end
local till = now + tonumber(ARGV[2])
local permits = tonumber(ARGV[6])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('HDEL', KEYS[1], 'permit:' .. gone)
end
local lease = redis.call('HMGET', KEYS[1], 'until', 'fence', 'shared', 'permit:' .. ARGV[1])
local shared = tonumber(lease[3]) or 0

local function take(fence)
  shared = math.max(shared, till)
  -- Not before the last of them: each comes with a retention made for its own ttl.
  local outlive = math.max(tonumber(ARGV[4]), shared - now)
  redis.call('ZADD', KEYS[2], till, ARGV[1])
  redis.call(
    'HSET', KEYS[1], 'shared', shared, 'fence', math.max(tonumber(lease[2]) or 0, fence),
    'permit:' .. ARGV[1], string.format('%.0f', fence) .. ':' .. string.format('%.0f', now) .. ':' .. ARGV[5]
  )
  redis.call('PEXPIRE', KEYS[1], outlive)
  redis.call('PEXPIRE', KEYS[2], outlive)
  return { 1, now, fence }
end

local mine = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]))
if mine and lease[4] then
  till = math.max(till, mine)
  return take(tonumber(string.match(lease[4], '^%d+')))
end
if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then
  return { 2, now }
end
local alone = tonumber(lease[1]) or 0
if alone > now then
  return { 0, now, alone - now }
end
local count = redis.call('ZCARD', KEYS[2])
if count >= permits then
  local leaver = redis.call('ZRANGE', KEYS[2], count - permits, count - permits, 'WITHSCORES')
  return { 0, now, tonumber(leaver[2]) - now }
end
return take(math.max((tonumber(lease[2]) or 0) + 1, micros))
