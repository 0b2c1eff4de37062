-- Gives the node back a lease that it lost and a majority has: same token, same fence. Never one that another took.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] deadline, µs of this server's clock
-- ARGV[3] owner token   ARGV[4] ttl, ms   ARGV[5] instance   ARGV[6] fence
--
-- Returns { now, answer, wait }: 1 healed, 0 taken by another, 3 too late, 5 in quarantine, for `wait` ms at least
--@ include node
--@ include lease
if stamp >= tonumber(ARGV[2]) then
  return { now, 3, 0 }
end
if not votes then
  return { now, 5, wait }
end
local token = redis.call('HGET', KEYS[2], 'token')
if token == ARGV[3] then
  prolong(KEYS[2], ARGV[4])
elseif token then
  return { now, 0, 0 }
else
  -- It is held: nothing is claimed or given back in vain any more.
  create(KEYS[2], ARGV[3], ARGV[6], '1', '9007199254740991', ARGV[5], now, ARGV[4])
  raise(tonumber(ARGV[6]))
end
return { now, 1, 0 }
