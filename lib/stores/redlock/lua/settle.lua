-- Tells the node the fence that a lease is handed out with: under ownership, so that whoever gets the key here next gets a
-- higher one (rule 8).
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] owner token   ARGV[3] fence   ARGV[4] round
--
-- Returns { now, answer, wait }: 1 settled, 0 not this token's, or of a later round, 5 in quarantine, for `wait` ms at least
--@ include node
if not votes then
  return { now, 5, wait }
end
local held = redis.call('HMGET', KEYS[2], 'token', 'fence', 'settled', 'round')
if held[1] ~= ARGV[2] or (tonumber(held[4]) or 0) > tonumber(ARGV[4]) then
  return { now, 0, 0 }
end
local fence = tonumber(ARGV[3])
if held[3] == '1' then
  fence = math.max(fence, tonumber(held[2]))
end
redis.call('HSET', KEYS[2], 'fence', digits(fence), 'settled', '1')
raise(fence)
return { now, 1, 0 }
