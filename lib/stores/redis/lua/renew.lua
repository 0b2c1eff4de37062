-- Prolongs many leases in one step. Never shortens, never re-creates, never takes (rule 5).
--
-- KEYS    for each hold: the lease, its permits
-- ARGV[1] retention, ms
-- ARGV    then for each hold: owner token, ttl in ms, permits (1: it has the key alone)
--
-- Returns { now, outcome, … } with one outcome per hold: 1 renewed, 0 not this token's any more
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local retention = tonumber(ARGV[1])
local reply = { now }
for i = 1, #KEYS / 2 do
  local lease, permits = KEYS[2 * i - 1], KEYS[2 * i]
  local token, ttl, places = ARGV[3 * i - 1], tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local outcome = 0
  if places == 1 then
    local held = redis.call('HMGET', lease, 'owner', 'until')
    local till = tonumber(held[2]) or 0
    if held[1] == token and till > now then
      outcome = 1
      till = math.max(till, now + ttl)
      redis.call('HSET', lease, 'until', till)
      redis.call('PEXPIRE', lease, math.max(retention, till - now))
    end
  else
    local till = tonumber(redis.call('ZSCORE', permits, token)) or 0
    if till > now then
      outcome = 1
      till = math.max(till, now + ttl)
      redis.call('ZADD', permits, till, token)
      local shared = math.max(till, tonumber(redis.call('HGET', lease, 'shared')) or 0)
      local outlive = math.max(retention, shared - now)
      redis.call('HSET', lease, 'shared', shared)
      redis.call('PEXPIRE', lease, outlive)
      redis.call('PEXPIRE', permits, outlive)
    end
  end
  reply[i + 1] = outcome
end
return reply
