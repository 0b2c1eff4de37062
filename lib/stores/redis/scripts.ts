// Generated from lua/*.lua by `npm run lua`. Do not edit.

export interface LuaScript {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}

export const scripts = {
  acquirePermit: {
    name: 'acquire-permit',
    sha1: 'd251f738dc8f489b023ea77f9872366d7b1dab2c',
    source: `-- Takes one of several permits of a key, or says why not. One atomic step (rule 1).
--
-- Holders of permits are members of a sorted set: token, scored by until; \`kept:<fence>\` for a permit that stays
-- taken after its release. Their fence, since and instance are fields of the lease's hash, named after the token.
-- A holder that has the key alone is respected, and respects the \`shared\` field.
--
-- KEYS[1] the lease      KEYS[2] its permits
-- KEYS[3] the mark of the unit of work, if the claim has one
-- ARGV[1] owner token    ARGV[2] ttl, ms       ARGV[3] deadline, ms of this server's clock
-- ARGV[4] retention, ms  ARGV[5] instance      ARGV[6] how many may hold it, this claim included
--
-- Returns what acquire.lua returns.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
if now >= tonumber(ARGV[3]) then
  return { 3, now }
end
local till = now + tonumber(ARGV[2])
local permits = tonumber(ARGV[6])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('HDEL', KEYS[1], 'permit:' .. gone)
end
local lease = redis.call('HMGET', KEYS[1], 'until', 'fence', 'shared', 'permit:' .. ARGV[1])
local shared = tonumber(lease[3]) or 0

local function take(fence)
  shared = math.max(shared, till)
  -- Not before the last of them: each comes with a retention made for its own ttl.
  local outlive = math.max(tonumber(ARGV[4]), shared - now)
  redis.call('ZADD', KEYS[2], till, ARGV[1])
  redis.call(
    'HSET', KEYS[1], 'shared', shared, 'fence', math.max(tonumber(lease[2]) or 0, fence),
    'permit:' .. ARGV[1], string.format('%.0f', fence) .. ':' .. string.format('%.0f', now) .. ':' .. ARGV[5]
  )
  redis.call('PEXPIRE', KEYS[1], outlive)
  redis.call('PEXPIRE', KEYS[2], outlive)
  return { 1, now, fence }
end

local mine = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]))
if mine and lease[4] then
  till = math.max(till, mine)
  return take(tonumber(string.match(lease[4], '^%d+')))
end
if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then
  return { 2, now }
end
local alone = tonumber(lease[1]) or 0
if alone > now then
  return { 0, now, alone - now }
end
local count = redis.call('ZCARD', KEYS[2])
if count >= permits then
  local leaver = redis.call('ZRANGE', KEYS[2], count - permits, count - permits, 'WITHSCORES')
  return { 0, now, tonumber(leaver[2]) - now }
end
return take(math.max((tonumber(lease[2]) or 0) + 1, micros))
`,
  },
  acquire: {
    name: 'acquire',
    sha1: 'e835d5da2d6f9879b889f0cc61c51df59206bd48',
    source: `-- Takes a key for one holder alone, or says why not. One atomic step (rule 1).
--
-- The lease is a hash: fence (the last one granted), owner, until, since, instance (of the holder; owner is empty
-- while the key is only kept taken), shared (until when holders of permits may have it). Times are milliseconds of
-- this server's clock; nobody else's clock takes part (rule 3). The hash outlives the holder by the retention, so
-- that the next fence is higher even if the clock was set back (rule 8).
--
-- KEYS[1] the lease
-- KEYS[2] the mark of the unit of work, if the claim has one
-- ARGV[1] owner token    ARGV[2] ttl, ms       ARGV[3] deadline, ms of this server's clock
-- ARGV[4] retention, ms  ARGV[5] instance
--
-- Returns { 1, now, fence }  granted; also when this token holds it already: same fence, ttl from now (rule 2)
--         { 0, now, wait }   held by others, for \`wait\` ms at most
--         { 2, now }         the unit of work is done
--         { 3, now }         the deadline has passed: nobody waits for this claim any more
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
if now >= tonumber(ARGV[3]) then
  return { 3, now }
end
local lease = redis.call('HMGET', KEYS[1], 'owner', 'until', 'fence', 'shared')
local till = now + tonumber(ARGV[2])
local untilNow = tonumber(lease[2]) or 0
if lease[1] == ARGV[1] and untilNow > now then
  if till > untilNow then
    redis.call('HSET', KEYS[1], 'until', till)
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
  return { 1, now, tonumber(lease[3]) }
end
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then
  return { 2, now }
end
local busy = math.max(untilNow, tonumber(lease[4]) or 0)
if busy > now then
  return { 0, now, busy - now }
end
local fence = math.max((tonumber(lease[3]) or 0) + 1, micros)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', till, 'fence', fence, 'since', now, 'instance', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return { 1, now, fence }
`,
  },
  inspect: {
    name: 'inspect',
    sha1: '20e33eb50d4fa78246ddfbf4fb9ae3e7e5e58633',
    source: `-- What is known of a lease, read in one step. Changes nothing.
--
-- KEYS[1] the lease   KEYS[2] its permits
--
-- Returns { now, { field, value, … } of the lease, { member, until, … } of its permits }
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
return { now, redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES') }
`,
  },
  release: {
    name: 'release',
    sha1: '172c03c68db45d5395d5192f9a24412628bd6740',
    source: `-- Frees what the token still holds, and nothing else (rule 7). The fence stays behind (rule 8).
--
-- KEYS[1] the lease        KEYS[2] its permits
-- KEYS[3] the mark of the unit of work, if it is done
-- ARGV[1] owner token      ARGV[2] permits (1: it has the key alone)
-- ARGV[3] keep the place taken for so many ms more, 0 to free it
-- ARGV[4] remember the mark for so many ms
-- ARGV[5] retention, ms
--
-- Returns 1 freed, 0 not this token's any more: expired, taken by another, or released before
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local keep = tonumber(ARGV[3])
local retention = tonumber(ARGV[5])
if ARGV[2] == '1' then
  local held = redis.call('HMGET', KEYS[1], 'owner', 'until')
  if held[1] ~= ARGV[1] or (tonumber(held[2]) or 0) <= now then
    return 0
  end
  if keep > 0 then
    redis.call('HSET', KEYS[1], 'owner', '', 'until', now + keep)
    redis.call('PEXPIRE', KEYS[1], math.max(retention, keep))
  else
    redis.call('HDEL', KEYS[1], 'owner', 'until', 'since', 'instance')
  end
else
  if (tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1])) or 0) <= now then
    return 0
  end
  local details = redis.call('HGET', KEYS[1], 'permit:' .. ARGV[1]) or ''
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('HDEL', KEYS[1], 'permit:' .. ARGV[1])
  if keep > 0 then
    redis.call('ZADD', KEYS[2], now + keep, 'kept:' .. (string.match(details, '^%d+') or ''))
  end
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
  if last[2] then
    local outlive = math.max(retention, tonumber(last[2]) - now)
    redis.call('HSET', KEYS[1], 'shared', last[2])
    redis.call('PEXPIRE', KEYS[1], outlive)
    redis.call('PEXPIRE', KEYS[2], outlive)
  else
    redis.call('HDEL', KEYS[1], 'shared')
  end
end
if KEYS[3] then
  redis.call('SET', KEYS[3], now, 'PX', ARGV[4])
end
return 1
`,
  },
  renew: {
    name: 'renew',
    sha1: '44c80ae34ab7276daa043cab0f86c0c5c4f0be89',
    source: `-- Prolongs many leases in one step. Never shortens, never re-creates, never takes (rule 5).
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
`,
  },
} satisfies Record<string, LuaScript>;
