-- Ends the quarantine of the node: its time is over, and what a majority of the others knows is made its own.
--
-- KEYS[1] the node   ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)
-- ARGV[2] the run that was looked at   ARGV[3] the highest fence that the others know   ARGV[4] the longest ttl that they know
--
-- Returns { now, answer, wait }: 1 it votes, 0 not yet, for `wait` ms at least
--@ include node
if votes then
  return { now, 1, 0 }
end
local theirs = tonumber(ARGV[4])
if theirs > longest then
  longest = theirs
  redis.call('HSET', KEYS[1], 'longest', longest)
end
wait = math.max(0, since + longest - now)
if run ~= ARGV[2] or wait > 0 then
  return { now, 0, wait }
end
raise(tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], 'admitted', '1')
return { now, 1, 0 }
