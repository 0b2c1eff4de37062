-- What a node knows of a lease. Changes nothing of it.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)
--
-- Returns { now, votes (1, 0), wait } and, when it is not free, token, fence, settled, instance, since and for how many ms more
--@ include node
local held = redis.call('HMGET', KEYS[2], 'token', 'fence', 'settled', 'instance', 'since')
if not held[1] then
  return { now, votes and 1 or 0, wait }
end
local left = math.max(0, redis.call('PTTL', KEYS[2]))
return { now, votes and 1 or 0, wait, held[1], held[2], held[3], held[4], held[5], left }
