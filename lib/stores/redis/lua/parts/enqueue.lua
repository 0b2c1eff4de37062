-- What enqueue.lua does. Needs clock, record, line and claim.
local record = redis.call('GET', KEYS[1])
local mine = untilOf(record) > now and owns(record, ARGV[2])
if KEYS[3] and not mine and redis.call('EXISTS', KEYS[3]) == 1 then
  return { now, 2, 0 }
end
local answer, figure = claim(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4], ARGV[5], record)
return { now, answer, figure }
