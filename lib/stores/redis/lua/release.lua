-- Frees what the token still holds, and nothing else (rule 7). The fence stays behind (rule 8).
--
-- KEYS[1] the lease        KEYS[2] its permits
-- KEYS[3] the mark of the unit of work, if it is done
-- ARGV[1] owner token      ARGV[2] permits (1: it has the key alone)
-- ARGV[3] keep the place taken for so many ms more, 0 to free it
-- ARGV[4] remember the mark for so many ms
-- ARGV[5] retention, ms
--
-- Returns 1 freed, 0 not this token's any more: expired, taken by another, or released before
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local keep = tonumber(ARGV[3])
local retention = tonumber(ARGV[5])
if ARGV[2] == '1' then
  local held = redis.call('HMGET', KEYS[1], 'owner', 'until')
  if held[1] ~= ARGV[1] or (tonumber(held[2]) or 0) <= now then
    return 0
  end
  if keep > 0 then
    redis.call('HSET', KEYS[1], 'owner', '', 'until', now + keep)
    redis.call('PEXPIRE', KEYS[1], math.max(retention, keep))
  else
    redis.call('HDEL', KEYS[1], 'owner', 'until', 'since', 'instance')
  end
else
  if (tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1])) or 0) <= now then
    return 0
  end
  local details = redis.call('HGET', KEYS[1], 'permit:' .. ARGV[1]) or ''
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('HDEL', KEYS[1], 'permit:' .. ARGV[1])
  if keep > 0 then
    redis.call('ZADD', KEYS[2], now + keep, 'kept:' .. (string.match(details, '^%d+') or ''))
  end
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
  if last[2] then
    local outlive = math.max(retention, tonumber(last[2]) - now)
    redis.call('HSET', KEYS[1], 'shared', last[2])
    redis.call('PEXPIRE', KEYS[1], outlive)
    redis.call('PEXPIRE', KEYS[2], outlive)
  else
    redis.call('HDEL', KEYS[1], 'shared')
  end
end
if KEYS[3] then
  redis.call('SET', KEYS[3], now, 'PX', ARGV[4])
end
return 1
