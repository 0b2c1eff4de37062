-- A lease on one node, a hash that expires with it:
--   token     its owner's; empty while the key is only kept taken
--   fence     the one it was handed out with, or this node's proposal for it
--   settled   1 when it was told that fence; one that was handed out is settled on a majority
--   round     which claim of its owner's asked for it last: what belongs to an earlier one comes too late
--   instance  who holds it, for people
--   since     when it was granted here, ms
local function create(lease, token, fence, settled, round, instance, granted, ttl)
  redis.call('HSET', lease, 'token', token, 'fence', fence, 'settled', settled, 'round', round,
    'instance', instance, 'since', granted)
  redis.call('PEXPIRE', lease, ttl)
end

-- Never shortens (rule 5).
local function prolong(lease, ttl)
  if redis.call('PTTL', lease) < tonumber(ttl) then
    redis.call('PEXPIRE', lease, ttl)
  end
end
