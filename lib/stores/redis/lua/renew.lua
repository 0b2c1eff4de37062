-- Prolongs many leases that are held alone, in one step. Never shortens, never re-creates, never takes (rule 5).
--
-- KEYS    for each hold: the lease
-- ARGV    for each hold: ttl in ms, in 12 digits; owner token
--
-- Returns { now, outcome, … } with one outcome per hold: 1 renewed, 0 not this token's any more, 2 no telling
--@ include clock
--@ include record
local reply = { now }
for i, lease in ipairs(KEYS) do
  local ttl = ARGV[2 * i - 1]
  -- A value of another type is nobody else's trouble.
  local record = redis.pcall('GET', lease)
  reply[i + 1] = type(record) == 'table' and 2 or 0
  if reply[i + 1] == 0 and record and owns(record, ARGV[2 * i]) then
    local till, at = untilOf(record), string.sub(record, 18, 33)
    if till > now then
      reply[i + 1] = 1
      local isNear = string.sub(at, 1, SAME) == string.sub(stamp, 1, SAME)
      if isNear and now + ttl >= till and 10 * ttl <= RETENTION then
        redis.call('SETRANGE', lease, 17, stamp .. ' ' .. ttl)
      else
        local longer, fence = math.max(till, now + ttl), string.sub(record, 1, 16)
        write(lease, fence, longer, sharedOf(record), string.sub(record, 62, 62), string.sub(record, 64), ttl)
      end
    end
  end
end
return reply
