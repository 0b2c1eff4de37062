-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
