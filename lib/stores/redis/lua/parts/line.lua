-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then `me`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
    --@ include told
    local heard = 0
    if token ~= me and mode == 'g' then
      --@ include hears
      heard = hears and redis.pcall(publish, channel, 'granted ' .. theirs .. ' ' .. token .. ' ' .. lease)
    elseif token ~= me then
      redis.pcall(publish, channel, 'free ' .. token)
    end
    if token == me or mode == 'g' and type(heard) == 'number' and heard > 0 then
      write(lease, theirs, now + ttl, 0, 'L', token .. ' ' .. instance, ttl)
      return token, tonumber(ttl), theirs
    end
  end
end

-- The same for a key that was held until now; frees it when there is nobody.
local function pass(lease, line, record)
  if not (hasLine(record) and serve(lease, line, record)) then
    redis.call('SET', lease, string.sub(record, 1, 16), 'KEEPTTL')
  end
end

--@ include began
-- `waits` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
local function placeOf(token, ttl, instance, waits)
  local waited, since, mode, channel = string.match(waits, '^(%d+) (%d+) (%a) (%S+)$')
  return token .. ' ' .. ttl .. ' ' .. mode .. ' ' .. channel .. ' ' .. instance, began(waited, since)
end

local function stand(lease, line, record, token, ttl, instance, waits)
  local place, since = placeOf(token, ttl, instance, waits)
  redis.call('ZADD', line, since, place)
  redis.call('PEXPIRE', line, outlive(ttl))
  -- Without a record there is nothing to mark: it was evicted, and would be made anew without an end.
  if record and not hasLine(record) then
    redis.call('SETRANGE', lease, 61, 'L')
  end
end
