-- Prolongs many leases on one node, in one step. Never shortens, never re-creates, never takes (rule 5).
--
-- KEYS[1] the node   KEYS[2] and on: for each hold the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   then for each hold: ttl, ms; owner token
--
-- Returns { now, wait, outcome, … } with one outcome for each hold: 1 renewed, 0 nobody has it here, 4 another has it, 2 no
-- telling. In quarantine there is no telling of any, for `wait` ms at least; else `wait` is -1
--@ include node
--@ include lease
local reply = { now, votes and -1 or wait }
for i = 2, #KEYS do
  local ttl, token = ARGV[2 * i - 2], ARGV[2 * i - 1]
  -- A value of another type is nobody else's trouble.
  local owner = redis.pcall('HGET', KEYS[i], 'token')
  if not votes or type(owner) == 'table' then
    reply[i + 1] = 2
  elseif owner == token then
    prolong(KEYS[i], ttl)
    reply[i + 1] = 1
  else
    reply[i + 1] = owner and 4 or 0
  end
end
return reply
