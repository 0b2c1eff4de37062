-- Takes a key for one holder alone, or says why not. One atomic step (rule 1).
--
-- The lease is a hash: fence (the last one granted), owner, until, since, instance (of the holder; owner is empty
-- while the key is only kept taken), shared (until when holders of permits may have it). Times are milliseconds of
-- this server's clock; nobody else's clock takes part (rule 3). The hash outlives the holder by the retention, so
-- that the next fence is higher even if the clock was set back (rule 8).
--
-- KEYS[1] the lease
-- KEYS[2] the mark of the unit of work, if the claim has one
-- ARGV[1] owner token    ARGV[2] ttl, ms       ARGV[3] deadline, ms of this server's clock
-- ARGV[4] retention, ms  ARGV[5] instance
--
-- Returns { 1, now, fence }  granted; also when this token holds it already: same fence, ttl from now (rule 2)
--         { 0, now, wait }   held by others, for `wait` ms at most
--         { 2, now }         the unit of work is done
--         { 3, now }         the deadline has passed: nobody waits for this claim any more
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
if now >= tonumber(ARGV[3]) then
  return { 3, now }
end
local lease = redis.call('HMGET', KEYS[1], 'owner', 'until', 'fence', 'shared')
local till = now + tonumber(ARGV[2])
local untilNow = tonumber(lease[2]) or 0
if lease[1] == ARGV[1] and untilNow > now then
  if till > untilNow then
    redis.call('HSET', KEYS[1], 'until', till)
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
  return { 1, now, tonumber(lease[3]) }
end
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 2, now }
end
local busy = math.max(untilNow, tonumber(lease[4]) or 0)
if busy > now then
  return { 0, now, busy - now }
end
local fence = math.max((tonumber(lease[3]) or 0) + 1, micros)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', till, 'fence', fence, 'since', now, 'instance', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return { 1, now, fence }
