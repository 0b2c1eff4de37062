-- Frees a key and claims it again for the next of the same process, in one step: those of other processes who came
-- before it go first.
--
-- KEYS[1] the lease   KEYS[2] its line
-- ARGV    as in enqueue.lua, for the claim; then ARGV[6] the token to be released
--
-- Returns the fence alone when the key was freed and granted. Else { now, freed, answer, figure }: freed as in
-- release.lua, answer and figure as in enqueue.lua
--@ include clock
local lease, line = KEYS[1], KEYS[2]
local record = redis.call('GET', lease)
local due, old = stamp < ARGV[1], ARGV[6] .. ' '
local freed = record and string.sub(record, 64, 63 + #old) == old
-- What nearly every hand-over meets, a key that is still its holder's, is done without a step too many.
if freed and due then
  local last, me, ttl = string.sub(record, 1, 16), ARGV[2], ARGV[3]
  if string.sub(record, 62, 62) == 'L' then
    if ARGV[5] ~= '' then
      --@ include began
      local waited, since, mode, channel = string.match(ARGV[5], '^(%d+) (%d+) (%a) (%S+)$')
      local place = me .. ' ' .. ttl .. ' ' .. mode .. ' ' .. channel .. ' ' .. ARGV[4]
      redis.call('ZADD', line, began(waited, since), place)
    end
    --@ include head
    if served == me then
      return stamp
    elseif served then
      local now = math.floor(tonumber(stamp) / 1000)
      return { now, 1, 0, tonumber(string.match(head, ' (%d+) ')) }
    end
  elseif last < stamp and 10 * ttl <= RETENTION then
    local held = stamp .. ' ' .. stamp .. ' ' .. ttl .. ' 0000000000000 - ' .. me .. ' ' .. ARGV[4]
    if string.sub(last, 1, SAME) == string.sub(stamp, 1, SAME) then
      redis.call('SET', lease, held, 'KEEPTTL')
    else
      redis.call('SET', lease, held, 'PX', KEEP)
    end
    return stamp
  end
end
--@ include record
--@ include line
--@ include claim
if not due then
  if freed then
    pass(lease, line, record)
  end
  return { now, freed and 1 or 0, 3, 0 }
end
if freed then
  -- Of no time at all, also for a clock that was set back since.
  local never = '0000000000000000 000000000000 0000000000000 '
  record = string.sub(record, 1, 17) .. never .. string.sub(record, 62, 63)
end
local answer, figure = claim(lease, line, ARGV[2], ARGV[3], ARGV[4], ARGV[5], record)
return { now, freed and 1 or 0, answer, figure }
