-- Frees what is still the tokens' alone, and nothing else (rule 7), and gives it to the next in line. The fence stays
-- behind (rule 8). Many in one round trip.
--
-- KEYS    for each hold: the lease, its line
-- ARGV    for each hold: owner token and a space
--
-- Returns an outcome when there is one hold, else { outcome, … }: 1 freed, 0 not this token's any more, 2 no telling
local reply = {}
for i = 1, #KEYS / 2 do
  local lease, token = KEYS[2 * i - 1], ARGV[i]
  -- A value of another type is nobody else's trouble.
  local record = redis.pcall('GET', lease)
  local outcome = type(record) == 'table' and 2 or 0
  if outcome == 0 and record and string.sub(record, 64, 63 + #token) == token then
    outcome = 1
    local last = string.sub(record, 1, 16)
    if string.sub(record, 62, 62) == '-' then
      redis.call('SET', lease, last, 'KEEPTTL')
    else
      local line, me = KEYS[2 * i], nil
      --@ include clock
      --@ include head
      if not served then
        --@ include record
        --@ include line
        pass(lease, line, record)
      end
    end
  end
  if #KEYS == 2 then
    return outcome
  end
  reply[i] = outcome
end
return reply
