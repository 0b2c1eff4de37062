-- The first in line, served without a step too many. Needs lease, line, last (the last fence) and me (a token, or nil);
-- sets served (a token, or nil when nobody was: the line is empty, or its head is one that takes more).
local served
local head = last < stamp and redis.call('ZPOPMIN', line)[1]
if head then
  local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
  --@ include told
  local heard = 1
  if token ~= me and mode == 'g' then
    --@ include hears
    heard = hears and redis.pcall(publish, channel, 'granted ' .. stamp .. ' ' .. token .. ' ' .. lease)
  elseif token ~= me then
    redis.pcall(publish, channel, 'free ' .. token)
  end
  if mode == 'g' and type(heard) == 'number' and heard > 0 then
    served = token
    local owner = token .. ' ' .. instance
    local held = stamp .. ' ' .. stamp .. ' ' .. ttl .. ' 0000000000000 L ' .. owner
    if 10 * ttl > RETENTION or string.sub(last, 1, SAME) ~= string.sub(stamp, 1, SAME) then
      redis.call('SET', lease, held, 'PX', math.max(KEEP, 10 * ttl))
    else
      redis.call('SET', lease, held, 'KEEPTTL')
    end
  end
end
