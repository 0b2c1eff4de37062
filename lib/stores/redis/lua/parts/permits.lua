-- Tells the first in line that shares the key, if there is one, that it may ask now. It keeps its turn by how long it
-- has waited: asking in vain puts it back where it was.
local function tell(line)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, 15)) do
    local token, mode, channel = string.match(place, '^(%S+) %d+ (%a) (%S+)')
    if mode == 'h' then
      redis.call('ZREM', line, place)
      --@ include told
      local heard = redis.pcall(publish, channel, 'free ' .. token)
      if type(heard) == 'number' and heard > 0 then
        return
      end
    end
  end
end

-- Writes what holders of permits change of a record: the highest fence and until when they may have the key.
local function share(lease, record, highest, shared, ttl)
  local line = hasLine(record) and 'L' or '-'
  -- Who had the key alone and let its time pass has no part in it: its late release must find nothing to free.
  local owner = untilOf(record) > now and string.sub(record, 64) or ''
  write(lease, highest, untilOf(record), shared, line, owner, math.max(ttl, (shared - now) / 10))
end
