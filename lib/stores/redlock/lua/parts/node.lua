-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
