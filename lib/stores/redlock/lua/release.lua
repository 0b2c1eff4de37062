-- Frees what is still the token's on this node, and nothing else (rule 7). Also in quarantine, where it counts for nothing.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)   KEYS[3] the mark of the unit of work, if it is done
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] owner token
-- ARGV[3] keep the key taken for so many ms more, 0 to free it   ARGV[4] remember the mark for so many ms
-- ARGV[5] the round that was in vain, if that is why: a grant to a later one stays. 0 to free any
--
-- Returns { now, answer, wait }: 1 freed, 0 not this token's any more, 5 in quarantine, for `wait` ms at least
--@ include node
--@ include lease
local held = redis.call('HMGET', KEYS[2], 'token', 'fence', 'since', 'round')
local round = tonumber(ARGV[5])
local owned = held[1] == ARGV[2] and (round == 0 or (tonumber(held[4]) or 0) <= round)
if owned then
  if KEYS[3] then
    redis.call('SET', KEYS[3], now, 'PX', ARGV[4])
  end
  if tonumber(ARGV[3]) > 0 then
    create(KEYS[2], '', held[2], '1', '0', '', held[3], ARGV[3])
  else
    redis.call('DEL', KEYS[2])
  end
end
return { now, votes and (owned and 1 or 0) or 5, wait }
