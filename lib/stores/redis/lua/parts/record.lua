-- A lease is one string, its fields of fixed width so that they are read without searching:
--    1-16  fence     the last one granted; the next is higher (rule 8)
--   18-33  at        when it was granted or renewed, µs
--   35-46  ttl       for how many ms from then one holder has the key alone, or it is kept taken
--   48-60  shared    until when holders of permits may have the key, ms
--      62  line      L when somebody may wait in line, else -
--   64-    owner     its token, a space, its instance; a space alone while the key is only kept taken
-- Nothing but the fence is left when the key is free and nobody waits. All times are of this server's clock; nobody
-- else's takes part (rule 3). The record outlives its use by the retention, so that the next fence is higher even if
-- the clock was set back.
local now = math.floor(tonumber(stamp) / 1000)

local function owns(record, token)
  return string.sub(record, 64, 64 + #token) == token .. ' '
end

local function untilOf(record)
  if not record or #record <= 16 then
    return 0
  end
  -- What is no number is no record of ours: told where the next fence is made.
  local at, ttl = tonumber(string.sub(record, 18, 33)), tonumber(string.sub(record, 35, 46))
  return at and ttl and math.floor(at / 1000) + ttl or 0
end

local function sharedOf(record)
  return record and tonumber(string.sub(record, 48, 60)) or 0
end

local function hasLine(record)
  return record and string.sub(record, 62, 62) == 'L'
end

-- The fence of the next grant (rule 8).
local function nextFence(record)
  local last = record and string.sub(record, 1, 16) or ''
  if record and (#last ~= 16 or string.find(last, '%D')) then
    error('the value of this key is no lease')
  end
  return last < stamp and stamp or string.format('%016.0f', tonumber(last) + 1)
end

local function outlive(ttl)
  return math.ceil(math.max(KEEP, 10 * ttl))
end

local function write(lease, fence, till, shared, line, owner, ttl)
  local left = math.max(0, till - now)
  -- Nobody has it alone: also not for a clock that is set back later.
  local at = left > 0 and stamp or '0000000000000000'
  local fields = string.format('%s %s %012.0f %013.0f %s %s', fence, at, left, shared, line, owner)
  redis.call('SET', lease, fields, 'PX', outlive(math.max(ttl, left / 10)))
end
