// Generated from lua/*.lua by `npm run lua`. Do not edit.

export interface LuaScript {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}

export const scripts = {
  acquirePermitGuarded: {
    name: 'acquire-permit-guarded',
    sha1: 'c948483875236bbce00c16fb690b648c09aa4185',
    source: `-- acquire-permit.lua for a store with quarantine: see enqueue-guarded.lua.
--
-- KEYS    as in acquire-permit.lua
-- ARGV    as in acquire-permit.lua; then the last three: see parts/quarantine.lua
--
-- Returns what enqueue-guarded.lua returns
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
-- Tells the first in line that shares the key, if there is one, that it may ask now. It keeps its turn by how long it
-- has waited: asking in vain puts it back where it was.
local function tell(line)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, 15)) do
    local token, mode, channel = string.match(place, '^(%S+) %d+ (%a) (%S+)')
    if mode == 'h' then
      redis.call('ZREM', line, place)
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
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
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
-- Refuses while this server may not know of leases that were granted elsewhere, or before it lost its data. The last of ARGV:
-- a key for the server's memory of itself, the id of this run of it as it said on this connection, and for how many ms it
-- grants nothing. The memory is "run until"; it is gone after a loss of data, another's after a restart or a failover.
local memory, run, pause = ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV]
local known, till = string.match(redis.call('GET', memory) or '', '^(%S+) (%d+)$')
-- Nor is it to last for longer because the clock was set back.
if known ~= run or tonumber(till) > now + pause then
  till = now + pause
  redis.call('SET', memory, run .. ' ' .. string.format('%.0f', till))
end
if tonumber(till) > now then
  return { now, 5, tonumber(till) - now }
end
-- What acquire-permit.lua does. Needs clock, record, line and permits.
local token, ttl, permits = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
local till = now + ttl
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
  redis.call('ZREM', KEYS[3], gone)
  redis.call('HDEL', KEYS[4], gone)
end
local record = redis.call('GET', KEYS[1])

local function take(mine)
  local shared = math.max(sharedOf(record), till)
  -- Not before the last of them: each comes with a retention made for its own ttl.
  local longest = math.max(outlive(ttl), shared - now)
  redis.call('ZADD', KEYS[3], till, token)
  redis.call('HSET', KEYS[4], token, mine .. ':' .. now .. ':' .. ARGV[4])
  redis.call('PEXPIRE', KEYS[3], longest)
  redis.call('PEXPIRE', KEYS[4], longest)
  local last = record and string.sub(record, 1, 16) or ''
  share(KEYS[1], record, last > mine and last or mine, shared, ttl)
  if ARGV[5] ~= '' then
    -- It may have asked without being told to: a turn is not told to who has it.
    redis.call('ZREM', KEYS[2], (placeOf(token, ARGV[3], ARGV[4], ARGV[5])))
  end
  if hasLine(record) and redis.call('ZCARD', KEYS[3]) < permits then
    tell(KEYS[2])
  end
  return { now, 1, mine }
end

local function refuse(wait)
  if ARGV[5] ~= '' then
    stand(KEYS[1], KEYS[2], record, token, ARGV[3], ARGV[4], ARGV[5])
  end
  return { now, 0, wait }
end

local mine, details = tonumber(redis.call('ZSCORE', KEYS[3], token)), redis.call('HGET', KEYS[4], token)
if mine and details and untilOf(record) <= now then
  till = math.max(till, mine)
  return take(string.match(details, '^%d+'))
end
if KEYS[5] and redis.call('EXISTS', KEYS[5]) == 1 then
  return { now, 2, 0 }
end
if untilOf(record) > now then
  return refuse(untilOf(record) - now)
end
local count = redis.call('ZCARD', KEYS[3])
if count >= permits then
  local leaver = redis.call('ZRANGE', KEYS[3], count - permits, count - permits, 'WITHSCORES')
  return refuse(tonumber(leaver[2]) - now)
end
return take(nextFence(record))
`,
  },
  acquirePermit: {
    name: 'acquire-permit',
    sha1: '18d688c99d57a89cf56589d32f3cc136cff29532',
    source: `-- Takes one of several permits of a key, or says why not. One atomic step (rule 1).
--
-- Holders of permits are members of a sorted set: token, scored by until; \`kept:<fence>\` for a permit that stays
-- taken after its release. Their "fence:since:instance" is in a hash, by token. A holder that has the key alone is
-- respected, and respects the \`shared\` field of the record.
--
-- KEYS[1] the lease   KEYS[2] its line   KEYS[3] its permits   KEYS[4] their holders
-- KEYS[5] the mark of the unit of work, if the claim has one
-- ARGV    as in enqueue.lua; then ARGV[6] how many may hold it, this claim included
--
-- Returns what enqueue.lua returns.
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
-- Tells the first in line that shares the key, if there is one, that it may ask now. It keeps its turn by how long it
-- has waited: asking in vain puts it back where it was.
local function tell(line)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, 15)) do
    local token, mode, channel = string.match(place, '^(%S+) %d+ (%a) (%S+)')
    if mode == 'h' then
      redis.call('ZREM', line, place)
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
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
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
-- What acquire-permit.lua does. Needs clock, record, line and permits.
local token, ttl, permits = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
local till = now + ttl
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
  redis.call('ZREM', KEYS[3], gone)
  redis.call('HDEL', KEYS[4], gone)
end
local record = redis.call('GET', KEYS[1])

local function take(mine)
  local shared = math.max(sharedOf(record), till)
  -- Not before the last of them: each comes with a retention made for its own ttl.
  local longest = math.max(outlive(ttl), shared - now)
  redis.call('ZADD', KEYS[3], till, token)
  redis.call('HSET', KEYS[4], token, mine .. ':' .. now .. ':' .. ARGV[4])
  redis.call('PEXPIRE', KEYS[3], longest)
  redis.call('PEXPIRE', KEYS[4], longest)
  local last = record and string.sub(record, 1, 16) or ''
  share(KEYS[1], record, last > mine and last or mine, shared, ttl)
  if ARGV[5] ~= '' then
    -- It may have asked without being told to: a turn is not told to who has it.
    redis.call('ZREM', KEYS[2], (placeOf(token, ARGV[3], ARGV[4], ARGV[5])))
  end
  if hasLine(record) and redis.call('ZCARD', KEYS[3]) < permits then
    tell(KEYS[2])
  end
  return { now, 1, mine }
end

local function refuse(wait)
  if ARGV[5] ~= '' then
    stand(KEYS[1], KEYS[2], record, token, ARGV[3], ARGV[4], ARGV[5])
  end
  return { now, 0, wait }
end

local mine, details = tonumber(redis.call('ZSCORE', KEYS[3], token)), redis.call('HGET', KEYS[4], token)
if mine and details and untilOf(record) <= now then
  till = math.max(till, mine)
  return take(string.match(details, '^%d+'))
end
if KEYS[5] and redis.call('EXISTS', KEYS[5]) == 1 then
  return { now, 2, 0 }
end
if untilOf(record) > now then
  return refuse(untilOf(record) - now)
end
local count = redis.call('ZCARD', KEYS[3])
if count >= permits then
  local leaver = redis.call('ZRANGE', KEYS[3], count - permits, count - permits, 'WITHSCORES')
  return refuse(tonumber(leaver[2]) - now)
end
return take(nextFence(record))
`,
  },
  acquire: {
    name: 'acquire',
    sha1: '42ed6850e4c3d6a0c5a4946493f92cce24c5e88c',
    source: `-- Takes keys, each for one holder alone who does not wait, or says why not. Many in one round trip.
--
-- KEYS    for each claim: the lease (see parts/record.lua)
-- ARGV[1] deadline, µs of this server's clock in 16 digits
-- ARGV    then for each claim: ttl; owner token and instance (see parts/takes.lua)
--
-- Returns the fence alone when there is one claim and it is granted. Else { now, answer, figure, … } with an answer and a
-- figure for each claim, as parts/takes.lua says
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
local reply, first, from = { 0 }, 1, 2
-- Takes keys, each for one holder alone who does not wait, or says why not; one atomic step for each (rule 1). What
-- nearly every claim meets, a key that is known and free, is done without a step too many. Needs first, where the leases
-- begin in KEYS, and from, where in ARGV: for each a ttl in ms, in 12 digits and at most a tenth of the retention; owner
-- token and instance with a space between. ARGV[1] is the deadline, µs of this server's clock in 16 digits. Adds to reply,
-- for each claim, an answer and a figure:
--   1, fence   granted; also when this token holds it already: same fence, ttl from now (rule 2)
--   0, wait    held by others, for \`wait\` ms at most
--   3, 0       the deadline has passed: nobody waits for this claim any more
--   4, 0       free, but others wait in line: ask with enqueue.lua
local late = stamp >= ARGV[1]
for i = first, #KEYS do
  local at = from + 2 * (i - first)
  local lease, ttl, owner = KEYS[i], ARGV[at], ARGV[at + 1]
  local record = not late and redis.call('GET', lease)
  local answer, figure
  if record and #record == 16 and record < stamp and not string.find(record, '%D') then
    local held = stamp .. ' ' .. stamp .. ' ' .. ttl .. ' 0000000000000 - ' .. owner
    if string.sub(record, 1, SAME) == string.sub(stamp, 1, SAME) then
      redis.call('SET', lease, held, 'KEEPTTL')
    else
      redis.call('SET', lease, held, 'PX', KEEP)
    end
    answer, figure = 1, stamp
  elseif late then
    answer, figure = 3, 0
  else
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
    local till = untilOf(record)
    local busy = math.max(till, sharedOf(record))
    if till > now and string.sub(record, 64) == owner then
      local mine = string.sub(record, 1, 16)
      if now + ttl > till then
        write(lease, mine, now + ttl, sharedOf(record), string.sub(record, 62, 62), owner, ttl)
      end
      answer, figure = 1, mine
    elseif busy > now then
      answer, figure = 0, busy - now
    elseif hasLine(record) then
      answer, figure = 4, 0
    else
      local mine = nextFence(record)
      write(lease, mine, now + ttl, 0, '-', owner, ttl)
      answer, figure = 1, mine
    end
  end
  reply[#reply + 1] = answer
  reply[#reply + 1] = figure
end
if #KEYS == 1 and reply[2] == 1 then
  return reply[3]
end
reply[1] = math.floor(tonumber(stamp) / 1000)
return reply
`,
  },
  enqueueGuarded: {
    name: 'enqueue-guarded',
    sha1: 'c3204c1be35980bbb1656262942d8c4af6fd7850',
    source: `-- enqueue.lua for a store with quarantine: a server that may have forgotten leases grants nothing for a while.
--
-- KEYS    as in enqueue.lua
-- ARGV    as in enqueue.lua; then the last three: see parts/quarantine.lua
--
-- Returns what enqueue.lua returns, or { now, 5, wait } while the quarantine lasts
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
-- One claim for a key alone. \`waits\` is empty, or a refusal puts the claimant in line.
-- Returns 1, fence when granted; 0, wait when held by others.
local function claim(lease, line, token, ttl, instance, waits, record)
  if record and #record > 16 then
    local till = untilOf(record)
    if till > now and owns(record, token) then
      local mine = string.sub(record, 1, 16)
      -- Also when it gains nothing: what is written is what replicas are asked for.
      if now + ttl >= till then
        local owner = string.sub(record, 64)
        write(lease, mine, now + ttl, sharedOf(record), string.sub(record, 62, 62), owner, ttl)
      end
      return 1, mine
    end
    local busy = math.max(till, sharedOf(record))
    if waits ~= '' and (busy > now or hasLine(record)) then
      stand(lease, line, record, token, ttl, instance, waits)
    end
    if busy > now then
      return 0, busy - now
    end
    if hasLine(record) then
      -- Those who wait were first (rule 10).
      local served, wait, theirs = serve(lease, line, record, token)
      if served == token then
        return 1, theirs
      elseif served then
        return 0, wait
      end
    end
  end
  local mine = nextFence(record)
  write(lease, mine, now + ttl, 0, '-', token .. ' ' .. instance, ttl)
  return 1, mine
end
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
-- Refuses while this server may not know of leases that were granted elsewhere, or before it lost its data. The last of ARGV:
-- a key for the server's memory of itself, the id of this run of it as it said on this connection, and for how many ms it
-- grants nothing. The memory is "run until"; it is gone after a loss of data, another's after a restart or a failover.
local memory, run, pause = ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV]
local known, till = string.match(redis.call('GET', memory) or '', '^(%S+) (%d+)$')
-- Nor is it to last for longer because the clock was set back.
if known ~= run or tonumber(till) > now + pause then
  till = now + pause
  redis.call('SET', memory, run .. ' ' .. string.format('%.0f', till))
end
if tonumber(till) > now then
  return { now, 5, tonumber(till) - now }
end
-- What enqueue.lua does. Needs clock, record, line and claim.
local record = redis.call('GET', KEYS[1])
local mine = untilOf(record) > now and owns(record, ARGV[2])
if KEYS[3] and not mine and redis.call('EXISTS', KEYS[3]) == 1 then
  return { now, 2, 0 }
end
local answer, figure = claim(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4], ARGV[5], record)
return { now, answer, figure }
`,
  },
  enqueue: {
    name: 'enqueue',
    sha1: 'ac7fca62b42769332fc81b3f9a4c2d7f2cdc0f80',
    source: `-- Takes a key for one holder alone, or puts the claimant in line, or says that its unit of work is done. One atomic
-- step (rule 1).
--
-- KEYS[1] the lease   KEYS[2] its line   KEYS[3] the mark of the unit of work, if the claim has one
-- ARGV[1] deadline, µs of this server's clock in 16 digits
-- ARGV[2] owner token   ARGV[3] ttl in ms, in 12 digits   ARGV[4] instance   ARGV[5] how it waits (see parts/line.lua), or nothing
--
-- Returns { now, answer, figure }: 1, fence · 0, wait · 3, 0 as acquire.lua; 2, 0 when the unit of work is done
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
-- One claim for a key alone. \`waits\` is empty, or a refusal puts the claimant in line.
-- Returns 1, fence when granted; 0, wait when held by others.
local function claim(lease, line, token, ttl, instance, waits, record)
  if record and #record > 16 then
    local till = untilOf(record)
    if till > now and owns(record, token) then
      local mine = string.sub(record, 1, 16)
      -- Also when it gains nothing: what is written is what replicas are asked for.
      if now + ttl >= till then
        local owner = string.sub(record, 64)
        write(lease, mine, now + ttl, sharedOf(record), string.sub(record, 62, 62), owner, ttl)
      end
      return 1, mine
    end
    local busy = math.max(till, sharedOf(record))
    if waits ~= '' and (busy > now or hasLine(record)) then
      stand(lease, line, record, token, ttl, instance, waits)
    end
    if busy > now then
      return 0, busy - now
    end
    if hasLine(record) then
      -- Those who wait were first (rule 10).
      local served, wait, theirs = serve(lease, line, record, token)
      if served == token then
        return 1, theirs
      elseif served then
        return 0, wait
      end
    end
  end
  local mine = nextFence(record)
  write(lease, mine, now + ttl, 0, '-', token .. ' ' .. instance, ttl)
  return 1, mine
end
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
-- What enqueue.lua does. Needs clock, record, line and claim.
local record = redis.call('GET', KEYS[1])
local mine = untilOf(record) > now and owns(record, ARGV[2])
if KEYS[3] and not mine and redis.call('EXISTS', KEYS[3]) == 1 then
  return { now, 2, 0 }
end
local answer, figure = claim(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4], ARGV[5], record)
return { now, answer, figure }
`,
  },
  exchange: {
    name: 'exchange',
    sha1: 'b0e3110078f161e0bed40784177b6b9ae11b66fa',
    source: `-- Frees keys, then takes keys, in one round trip: what release.lua and acquire.lua do, in this order, so that a claim
-- behind the release of the same key finds it free.
--
-- KEYS    for each hold that is given back: the lease, its line; then for each claim: the lease
-- ARGV[1] deadline of the claims, µs of this server's clock in 16 digits   ARGV[2] how many holds are given back
-- ARGV    then for each hold: owner token and a space; then for each claim: ttl; owner token and instance
--
-- Returns the fence alone when one was freed and one granted. Else { now, outcome, …, answer, figure, … }
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
local holds, from = tonumber(ARGV[2]), 3
-- Frees what is still the tokens' alone, and nothing else (rule 7), and gives it to the next in line. The fence stays
-- behind (rule 8). Needs holds, how many; KEYS[1] and on: for each the lease, its line; ARGV[from] and on: for each the
-- owner token and a space. Sets freed: for each 1 freed, 0 not this token's any more, 2 no telling.
local freed = {}
for i = 1, holds do
  local lease, token = KEYS[2 * i - 1], ARGV[from + i - 1]
  -- A value of another type is nobody else's trouble.
  local record = redis.pcall('GET', lease)
  freed[i] = type(record) == 'table' and 2 or 0
  if freed[i] == 0 and record and string.sub(record, 64, 63 + #token) == token then
    freed[i] = 1
    local last = string.sub(record, 1, 16)
    if string.sub(record, 62, 62) == '-' then
      redis.call('SET', lease, last, 'KEEPTTL')
    else
      local line, me = KEYS[2 * i], nil
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
-- The first in line, served without a step too many. Needs lease, line, last (the last fence) and me (a token, or nil);
-- sets served (a token, or nil when nobody was: the line is empty, or its head is one that takes more).
local served
local head = last < stamp and redis.call('ZPOPMIN', line)[1]
if head then
  local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
  local heard = 1
  if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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
      if not served then
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
        pass(lease, line, record)
      end
    end
  end
end
local reply = { 0 }
for i = 1, holds do
  reply[i + 1] = freed[i]
end
local first = 2 * holds + 1
from = from + holds
-- Takes keys, each for one holder alone who does not wait, or says why not; one atomic step for each (rule 1). What
-- nearly every claim meets, a key that is known and free, is done without a step too many. Needs first, where the leases
-- begin in KEYS, and from, where in ARGV: for each a ttl in ms, in 12 digits and at most a tenth of the retention; owner
-- token and instance with a space between. ARGV[1] is the deadline, µs of this server's clock in 16 digits. Adds to reply,
-- for each claim, an answer and a figure:
--   1, fence   granted; also when this token holds it already: same fence, ttl from now (rule 2)
--   0, wait    held by others, for \`wait\` ms at most
--   3, 0       the deadline has passed: nobody waits for this claim any more
--   4, 0       free, but others wait in line: ask with enqueue.lua
local late = stamp >= ARGV[1]
for i = first, #KEYS do
  local at = from + 2 * (i - first)
  local lease, ttl, owner = KEYS[i], ARGV[at], ARGV[at + 1]
  local record = not late and redis.call('GET', lease)
  local answer, figure
  if record and #record == 16 and record < stamp and not string.find(record, '%D') then
    local held = stamp .. ' ' .. stamp .. ' ' .. ttl .. ' 0000000000000 - ' .. owner
    if string.sub(record, 1, SAME) == string.sub(stamp, 1, SAME) then
      redis.call('SET', lease, held, 'KEEPTTL')
    else
      redis.call('SET', lease, held, 'PX', KEEP)
    end
    answer, figure = 1, stamp
  elseif late then
    answer, figure = 3, 0
  else
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
    local till = untilOf(record)
    local busy = math.max(till, sharedOf(record))
    if till > now and string.sub(record, 64) == owner then
      local mine = string.sub(record, 1, 16)
      if now + ttl > till then
        write(lease, mine, now + ttl, sharedOf(record), string.sub(record, 62, 62), owner, ttl)
      end
      answer, figure = 1, mine
    elseif busy > now then
      answer, figure = 0, busy - now
    elseif hasLine(record) then
      answer, figure = 4, 0
    else
      local mine = nextFence(record)
      write(lease, mine, now + ttl, 0, '-', owner, ttl)
      answer, figure = 1, mine
    end
  end
  reply[#reply + 1] = answer
  reply[#reply + 1] = figure
end
if #reply == 4 and holds == 1 and reply[2] == 1 and reply[3] == 1 then
  return reply[4]
end
reply[1] = math.floor(tonumber(stamp) / 1000)
return reply
`,
  },
  handOver: {
    name: 'hand-over',
    sha1: 'e428ef6db67d962eb3f767ec426bc1be4f12c517',
    source: `-- Frees a key and claims it again for the next of the same process, in one step: those of other processes who came
-- before it go first.
--
-- KEYS[1] the lease   KEYS[2] its line
-- ARGV    as in enqueue.lua, for the claim; then ARGV[6] the token to be released
--
-- Returns the fence alone when the key was freed and granted. Else { now, freed, answer, figure }: freed as in
-- release.lua, answer and figure as in enqueue.lua
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
local lease, line = KEYS[1], KEYS[2]
local record = redis.call('GET', lease)
local due, old = stamp < ARGV[1], ARGV[6] .. ' '
local freed = record and string.sub(record, 64, 63 + #old) == old
-- What nearly every hand-over meets, a key that is still its holder's, is done without a step too many.
if freed and due then
  local last, me, ttl = string.sub(record, 1, 16), ARGV[2], ARGV[3]
  if string.sub(record, 62, 62) == 'L' then
    if ARGV[5] ~= '' then
-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
      local waited, since, mode, channel = string.match(ARGV[5], '^(%d+) (%d+) (%a) (%S+)$')
      local place = me .. ' ' .. ttl .. ' ' .. mode .. ' ' .. channel .. ' ' .. ARGV[4]
      redis.call('ZADD', line, began(waited, since), place)
    end
-- The first in line, served without a step too many. Needs lease, line, last (the last fence) and me (a token, or nil);
-- sets served (a token, or nil when nobody was: the line is empty, or its head is one that takes more).
local served
local head = last < stamp and redis.call('ZPOPMIN', line)[1]
if head then
  local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
  local heard = 1
  if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
-- One claim for a key alone. \`waits\` is empty, or a refusal puts the claimant in line.
-- Returns 1, fence when granted; 0, wait when held by others.
local function claim(lease, line, token, ttl, instance, waits, record)
  if record and #record > 16 then
    local till = untilOf(record)
    if till > now and owns(record, token) then
      local mine = string.sub(record, 1, 16)
      -- Also when it gains nothing: what is written is what replicas are asked for.
      if now + ttl >= till then
        local owner = string.sub(record, 64)
        write(lease, mine, now + ttl, sharedOf(record), string.sub(record, 62, 62), owner, ttl)
      end
      return 1, mine
    end
    local busy = math.max(till, sharedOf(record))
    if waits ~= '' and (busy > now or hasLine(record)) then
      stand(lease, line, record, token, ttl, instance, waits)
    end
    if busy > now then
      return 0, busy - now
    end
    if hasLine(record) then
      -- Those who wait were first (rule 10).
      local served, wait, theirs = serve(lease, line, record, token)
      if served == token then
        return 1, theirs
      elseif served then
        return 0, wait
      end
    end
  end
  local mine = nextFence(record)
  write(lease, mine, now + ttl, 0, '-', token .. ' ' .. instance, ttl)
  return 1, mine
end
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
`,
  },
  inspect: {
    name: 'inspect',
    sha1: 'd1a7e2bfb0ec90cb773c617142079f8d5cc9ecbf',
    source: `-- What is known of a lease, read in one step. Changes nothing.
--
-- KEYS[1] the lease   KEYS[2] its permits   KEYS[3] their holders
--
-- Returns { now, record or '', { token, until, … }, { token, "fence:since:instance", … } }
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
return {
  math.floor(tonumber(stamp) / 1000),
  redis.call('GET', KEYS[1]) or '',
  redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'),
  redis.call('HGETALL', KEYS[3]),
}
`,
  },
  leave: {
    name: 'leave',
    sha1: 'e4ae1ba9c332412e6db96c9cf8010ea145f5d9a9',
    source: `-- Takes a claimant out of the line, and frees the key if it was granted to it in the meantime. A turn that it was
-- told of and does not take goes to the next.
--
-- KEYS[1] the lease   KEYS[2] its line
-- ARGV[1] owner token   ARGV[2] its place in line
--
-- Returns 1 when it held the key, 0 when it did not
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
-- Tells the first in line that shares the key, if there is one, that it may ask now. It keeps its turn by how long it
-- has waited: asking in vain puts it back where it was.
local function tell(line)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, 15)) do
    local token, mode, channel = string.match(place, '^(%S+) %d+ (%a) (%S+)')
    if mode == 'h' then
      redis.call('ZREM', line, place)
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
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
local stood = redis.call('ZREM', KEYS[2], ARGV[2]) == 1
local record = redis.call('GET', KEYS[1])
local busy = untilOf(record) > now
local held = busy and owns(record, ARGV[1])
local free = not busy and sharedOf(record) <= now
if held or free and hasLine(record) then
  pass(KEYS[1], KEYS[2], record)
elseif not busy and not stood then
  tell(KEYS[2])
end
return held and 1 or 0
`,
  },
  releaseWith: {
    name: 'release-with',
    sha1: '1ec8ef9bdc811844bc2913e08c846c6c1dc9195f',
    source: `-- Frees what the token still holds, and nothing else (rule 7), where there is more to it than in release.lua: a
-- permit, a place that stays taken, a unit of work that is done. The fence stays behind (rule 8).
--
-- KEYS[1] the lease   KEYS[2] its line   KEYS[3] its permits   KEYS[4] their holders
-- KEYS[5] the mark of the unit of work, if it is done
-- ARGV[1] owner token   ARGV[2] its ttl, ms   ARGV[3] permits (1: it has the key alone)
-- ARGV[4] keep the place taken for so many ms more, 0 to free it
-- ARGV[5] remember the mark for so many ms
--
-- Returns 1 freed, 0 not this token's any more: expired, taken by another, or released before
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
-- Tells the first in line that shares the key, if there is one, that it may ask now. It keeps its turn by how long it
-- has waited: asking in vain puts it back where it was.
local function tell(line)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, 15)) do
    local token, mode, channel = string.match(place, '^(%S+) %d+ (%a) (%S+)')
    if mode == 'h' then
      redis.call('ZREM', line, place)
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
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
local lease, line, permits, holders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, ttl, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local record = redis.call('GET', lease)

-- How long it takes has changed: whoever is first in line asks again.
local function announce()
  local first = redis.call('ZRANGE', line, 0, 0)[1]
  if first then
    local waiting, channel = string.match(first, '^(%S+) %d+ %a (%S+)')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    redis.pcall(publish, channel, 'free ' .. waiting)
  end
end

local function releaseAlone()
  if untilOf(record) <= now or not owns(record, token) then
    return false
  end
  if keep > 0 then
    local flag = hasLine(record) and 'L' or '-'
    write(lease, string.sub(record, 1, 16), now + keep, 0, flag, ' ', math.max(ttl, keep / 10))
    announce()
  else
    pass(lease, line, record)
  end
  return true
end

local function releasePermit()
  -- Who has the key alone got it when the permits were over, whatever the clock says now.
  if untilOf(record) > now or (tonumber(redis.call('ZSCORE', permits, token)) or 0) <= now then
    return false
  end
  local details = redis.call('HGET', holders, token) or ''
  redis.call('ZREM', permits, token)
  redis.call('HDEL', holders, token)
  if keep > 0 then
    redis.call('ZADD', permits, now + keep, 'kept:' .. (string.match(details, '^%d+') or ''))
  end
  local last = redis.call('ZRANGE', permits, -1, -1, 'WITHSCORES')
  local shared = tonumber(last[2]) or 0
  if shared <= now then
    if record then
      pass(lease, line, record)
    end
    return true
  end
  local longest = math.max(outlive(ttl), shared - now)
  redis.call('PEXPIRE', permits, longest)
  redis.call('PEXPIRE', holders, longest)
  share(lease, record, record and string.sub(record, 1, 16) or stamp, shared, ttl)
  if keep == 0 then
    tell(line)
  end
  return true
end

local freed = ARGV[3] == '1' and releaseAlone() or ARGV[3] ~= '1' and releasePermit()
if freed and KEYS[5] then
  redis.call('SET', KEYS[5], now, 'PX', ARGV[5])
end
return freed and 1 or 0
`,
  },
  release: {
    name: 'release',
    sha1: '4e5499304e4f4cb2121ad8356a27d3457cd39deb',
    source: `-- Frees what is still the tokens' alone, and nothing else (rule 7), and gives it to the next in line. Many in one round
-- trip.
--
-- KEYS    for each hold: the lease, its line
-- ARGV    for each hold: owner token and a space
--
-- Returns an outcome when there is one hold, else { outcome, … }: 1 freed, 0 not this token's any more, 2 no telling
local holds, from = #ARGV, 1
-- Frees what is still the tokens' alone, and nothing else (rule 7), and gives it to the next in line. The fence stays
-- behind (rule 8). Needs holds, how many; KEYS[1] and on: for each the lease, its line; ARGV[from] and on: for each the
-- owner token and a space. Sets freed: for each 1 freed, 0 not this token's any more, 2 no telling.
local freed = {}
for i = 1, holds do
  local lease, token = KEYS[2 * i - 1], ARGV[from + i - 1]
  -- A value of another type is nobody else's trouble.
  local record = redis.pcall('GET', lease)
  freed[i] = type(record) == 'table' and 2 or 0
  if freed[i] == 0 and record and string.sub(record, 64, 63 + #token) == token then
    freed[i] = 1
    local last = string.sub(record, 1, 16)
    if string.sub(record, 62, 62) == '-' then
      redis.call('SET', lease, last, 'KEEPTTL')
    else
      local line, me = KEYS[2 * i], nil
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
-- The first in line, served without a step too many. Needs lease, line, last (the last fence) and me (a token, or nil);
-- sets served (a token, or nil when nobody was: the line is empty, or its head is one that takes more).
local served
local head = last < stamp and redis.call('ZPOPMIN', line)[1]
if head then
  local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
  local heard = 1
  if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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
      if not served then
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
-- Those who wait in line: a sorted set, scored by when they began to wait, of
--   "token ttl mode channel instance"
-- mode g: the key is granted to it as soon as it is its turn, and it is told; h: it is told to ask.

-- Gives a free key to the first in line who can be told. Who cannot be (its connection is gone) is passed over: a
-- dead process in line costs nothing. Returns the token and the ttl of who has the key now, or nothing when the line
-- has come to its end: until then \`me\`, if it stands there, would be served twice.
local function serve(lease, line, record, me)
  local theirs = nextFence(record)
  while true do
    local head = redis.call('ZPOPMIN', line)[1]
    if not head then
      return nil
    end
    local token, ttl, mode, channel, instance = string.match(head, '^(%S+) (%d+) (%a) (%S+) (.*)$')
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
    local heard = 0
    if token ~= me and mode == 'g' then
-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
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

-- When a claimant began to wait, as its place in line: \`waited\` µs before it sent its claim, which was \`since\` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
-- \`waits\` says since how many µs a claimant waits, since when, in which mode, and on which channel it is told.
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
        pass(lease, line, record)
      end
    end
  end
end
if holds == 1 then
  return freed[1]
end
return freed
`,
  },
  renewPermit: {
    name: 'renew-permit',
    sha1: '346efe82bbd1a211033bd9ef3f3dbabf002ee69c',
    source: `-- Prolongs a permit. Never shortens, never re-creates, never takes (rule 5).
--
-- KEYS[1] the lease   KEYS[2] its permits   KEYS[3] their holders
-- ARGV[1] owner token   ARGV[2] ttl, ms
--
-- Returns { now, outcome }: 1 renewed, 0 not this token's any more
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
-- Tells the first in line that shares the key, if there is one, that it may ask now. It keeps its turn by how long it
-- has waited: asking in vain puts it back where it was.
local function tell(line)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, 15)) do
    local token, mode, channel = string.match(place, '^(%S+) %d+ (%a) (%S+)')
    if mode == 'h' then
      redis.call('ZREM', line, place)
-- How those who listen on \`channel\` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
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
local till = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1])) or 0
local record = redis.call('GET', KEYS[1])
-- Who has the key alone got it when the permits were over, whatever the clock says now.
if till <= now or untilOf(record) > now then
  return { now, 0 }
end
local ttl = tonumber(ARGV[2])
till = math.max(till, now + ttl)
redis.call('ZADD', KEYS[2], till, ARGV[1])
local shared = math.max(till, sharedOf(record))
local longest = math.max(outlive(ttl), shared - now)
share(KEYS[1], record, record and string.sub(record, 1, 16) or stamp, shared, ttl)
redis.call('PEXPIRE', KEYS[2], longest)
redis.call('PEXPIRE', KEYS[3], longest)
return { now, 1 }
`,
  },
  renew: {
    name: 'renew',
    sha1: 'c74d3697f0ec935af18c62e4c894fdce9404e673',
    source: `-- Prolongs many leases that are held alone, in one step. Never shortens, never re-creates, never takes (rule 5).
--
-- KEYS    for each hold: the lease
-- ARGV    for each hold: ttl in ms, in 12 digits; owner token
--
-- Returns { now, outcome, … } with one outcome per hold: 1 renewed, 0 not this token's any more, 2 no telling
-- The time of this server in µs, in 16 digits of text: compared as text, which for digits of the same length comes to
-- the same, and written without the detour by numbers, of which Lua would not keep all digits. It is also the next
-- fence, unless the last one was higher.
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = time[1] .. string.sub('00000' .. time[2], -6)
-- For how long a record outlives its use at least, what its expiry is set to, and how many digits of two stamps are
-- the same when they are so near each other that it need not be set again.
local RETENTION, KEEP, SAME = 86400000, 87400000, 7
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
`,
  },
} satisfies Record<string, LuaScript>;
