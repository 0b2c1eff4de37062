-- What acquire-permit.lua does. Needs clock, record, line and permits.
local token, ttl, permits = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
local till = now + ttl
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
  redis.call('ZREM', KEYS[3], gone)
  redis.call('HDEL', KEYS[4], gone)
end
local record = redis.call('GET', KEYS[1])

local function take(mine)
  local shared = math.max(sharedOf(record), till)
  -- Not before the last of them: each comes with a retention made for its own ttl.
  local longest = math.max(outlive(ttl), shared - now)
  redis.call('ZADD', KEYS[3], till, token)
  redis.call('HSET', KEYS[4], token, mine .. ':' .. now .. ':' .. ARGV[4])
  redis.call('PEXPIRE', KEYS[3], longest)
  redis.call('PEXPIRE', KEYS[4], longest)
  local last = record and string.sub(record, 1, 16) or ''
  share(KEYS[1], record, last > mine and last or mine, shared, ttl)
  if ARGV[5] ~= '' then
    -- It may have asked without being told to: a turn is not told to who has it.
    redis.call('ZREM', KEYS[2], (placeOf(token, ARGV[3], ARGV[4], ARGV[5])))
  end
  if hasLine(record) and redis.call('ZCARD', KEYS[3]) < permits then
    tell(KEYS[2])
  end
  return { now, 1, mine }
end

local function refuse(wait)
  if ARGV[5] ~= '' then
    stand(KEYS[1], KEYS[2], record, token, ARGV[3], ARGV[4], ARGV[5])
  end
  return { now, 0, wait }
end

local mine, details = tonumber(redis.call('ZSCORE', KEYS[3], token)), redis.call('HGET', KEYS[4], token)
if mine and details and untilOf(record) <= now then
  till = math.max(till, mine)
  return take(string.match(details, '^%d+'))
end
if KEYS[5] and redis.call('EXISTS', KEYS[5]) == 1 then
  return { now, 2, 0 }
end
if untilOf(record) > now then
  return refuse(untilOf(record) - now)
end
local count = redis.call('ZCARD', KEYS[3])
if count >= permits then
  local leaver = redis.call('ZRANGE', KEYS[3], count - permits, count - permits, 'WITHSCORES')
  return refuse(tonumber(leaver[2]) - now)
end
return take(nextFence(record))
