-- Frees what the token still holds, and nothing else (rule 7), where there is more to it than in release.lua: a
-- permit, a place that stays taken, a unit of work that is done. The fence stays behind (rule 8).
--
-- KEYS[1] the lease   KEYS[2] its line   KEYS[3] its permits   KEYS[4] their holders
-- KEYS[5] the mark of the unit of work, if it is done
-- ARGV[1] owner token   ARGV[2] its ttl, ms   ARGV[3] permits (1: it has the key alone)
-- ARGV[4] keep the place taken for so many ms more, 0 to free it
-- ARGV[5] remember the mark for so many ms
--
-- Returns 1 freed, 0 not this token's any more: expired, taken by another, or released before
--@ include clock
--@ include record
--@ include line
--@ include permits
local lease, line, permits, holders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, ttl, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local record = redis.call('GET', lease)

-- How long it takes has changed: whoever is first in line asks again.
local function announce()
  local first = redis.call('ZRANGE', line, 0, 0)[1]
  if first then
    local waiting, channel = string.match(first, '^(%S+) %d+ %a (%S+)')
    --@ include told
    redis.pcall(publish, channel, 'free ' .. waiting)
  end
end

local function releaseAlone()
  if untilOf(record) <= now or not owns(record, token) then
    return false
  end
  if keep > 0 then
    local flag = hasLine(record) and 'L' or '-'
    write(lease, string.sub(record, 1, 16), now + keep, 0, flag, ' ', math.max(ttl, keep / 10))
    announce()
  else
    pass(lease, line, record)
  end
  return true
end

local function releasePermit()
  -- Who has the key alone got it when the permits were over, whatever the clock says now.
  if untilOf(record) > now or (tonumber(redis.call('ZSCORE', permits, token)) or 0) <= now then
    return false
  end
  local details = redis.call('HGET', holders, token) or ''
  redis.call('ZREM', permits, token)
  redis.call('HDEL', holders, token)
  if keep > 0 then
    redis.call('ZADD', permits, now + keep, 'kept:' .. (string.match(details, '^%d+') or ''))
  end
  local last = redis.call('ZRANGE', permits, -1, -1, 'WITHSCORES')
  local shared = tonumber(last[2]) or 0
  if shared <= now then
    if record then
      pass(lease, line, record)
    end
    return true
  end
  local longest = math.max(outlive(ttl), shared - now)
  redis.call('PEXPIRE', permits, longest)
  redis.call('PEXPIRE', holders, longest)
  share(lease, record, record and string.sub(record, 1, 16) or stamp, shared, ttl)
  if keep == 0 then
    tell(line)
  end
  return true
end

local freed = ARGV[3] == '1' and releaseAlone() or ARGV[3] ~= '1' and releasePermit()
if freed and KEYS[5] then
  redis.call('SET', KEYS[5], now, 'PX', ARGV[5])
end
return freed and 1 or 0
