-- One node's vote on a claim.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)   KEYS[3] the mark of the unit of work, if the claim names one
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] deadline, µs of this server's clock
-- ARGV[3] owner token   ARGV[4] ttl, ms   ARGV[5] instance   ARGV[6] round
--
-- Returns { now, answer, figure, more }
--   1, fence, settled   granted, with a fence that this node proposes; also when this token has it already: same fence, ttl
--                       from now (rule 2)
--   0, wait, who        held by others, for `wait` ms at most; `who` tells one owner from another and is no secret
--   2, 0, ''            the unit of work is done
--   3, 0, ''            the deadline has passed: nobody waits for this claim any more
--   5, wait, ''         in quarantine, for `wait` ms at least
--@ include node
--@ include lease
local lease, token, ttl, round = KEYS[2], ARGV[3], ARGV[4], ARGV[6]
if stamp >= tonumber(ARGV[2]) then
  return { now, 3, 0, '' }
end
if not votes then
  return { now, 5, wait, '' }
end
local held = redis.call('HMGET', lease, 'token', 'fence', 'settled', 'round')
if held[1] == token then
  if (tonumber(held[4]) or 0) < tonumber(round) then
    redis.call('HSET', lease, 'round', round)
  end
  prolong(lease, ttl)
  return { now, 1, held[2], held[3] }
end
if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then
  return { now, 2, 0, '' }
end
if held[1] then
  return { now, 0, math.max(0, redis.call('PTTL', lease)), string.sub(redis.sha1hex(held[1]), 1, 16) }
end
local fence = digits(math.max(high + 1, stamp))
create(lease, token, fence, '0', round, ARGV[5], now, ttl)
return { now, 1, fence, '0' }
