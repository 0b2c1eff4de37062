// Generated from lua/*.lua by `npm run lua`. Do not edit.

export interface LuaScript {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}

export const scripts = {
  admit: {
    name: 'admit',
    sha1: 'd1b821a0167b51672c1c31b38ff7f99ee43815da',
    source: `-- Ends the quarantine of the node: its time is over, and what a majority of the others knows is made its own.
--
-- KEYS[1] the node   ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)
-- ARGV[2] the run that was looked at   ARGV[3] the highest fence that the others know   ARGV[4] the longest ttl that they know
--
-- Returns { now, answer, wait }: 1 it votes, 0 not yet, for \`wait\` ms at least
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
if votes then
  return { now, 1, 0 }
end
local theirs = tonumber(ARGV[4])
if theirs > longest then
  longest = theirs
  redis.call('HSET', KEYS[1], 'longest', longest)
end
wait = math.max(0, since + longest - now)
if run ~= ARGV[2] or wait > 0 then
  return { now, 0, wait }
end
raise(tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], 'admitted', '1')
return { now, 1, 0 }
`,
  },
  claim: {
    name: 'claim',
    sha1: 'f50a838214165368d5be92fe5f5d601a7ea3329d',
    source: `-- One node's vote on a claim.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)   KEYS[3] the mark of the unit of work, if the claim names one
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] deadline, µs of this server's clock
-- ARGV[3] owner token   ARGV[4] ttl, ms   ARGV[5] instance   ARGV[6] round
--
-- Returns { now, answer, figure, more }
--   1, fence, settled   granted, with a fence that this node proposes; also when this token has it already: same fence, ttl
--                       from now (rule 2)
--   0, wait, who        held by others, for \`wait\` ms at most; \`who\` tells one owner from another and is no secret
--   2, 0, ''            the unit of work is done
--   3, 0, ''            the deadline has passed: nobody waits for this claim any more
--   5, wait, ''         in quarantine, for \`wait\` ms at least
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
-- A lease on one node, a hash that expires with it:
--   token     its owner's; empty while the key is only kept taken
--   fence     the one it was handed out with, or this node's proposal for it
--   settled   1 when it was told that fence; one that was handed out is settled on a majority
--   round     which claim of its owner's asked for it last: what belongs to an earlier one comes too late
--   instance  who holds it, for people
--   since     when it was granted here, ms
local function create(lease, token, fence, settled, round, instance, granted, ttl)
  redis.call('HSET', lease, 'token', token, 'fence', fence, 'settled', settled, 'round', round,
    'instance', instance, 'since', granted)
  redis.call('PEXPIRE', lease, ttl)
end

-- Never shortens (rule 5).
local function prolong(lease, ttl)
  if redis.call('PTTL', lease) < tonumber(ttl) then
    redis.call('PEXPIRE', lease, ttl)
  end
end
local lease, token, ttl, round = KEYS[2], ARGV[3], ARGV[4], ARGV[6]
if stamp >= tonumber(ARGV[2]) then
  return { now, 3, 0, '' }
end
if not votes then
  return { now, 5, wait, '' }
end
local held = redis.call('HMGET', lease, 'token', 'fence', 'settled', 'round')
if held[1] == token then
  if (tonumber(held[4]) or 0) < tonumber(round) then
    redis.call('HSET', lease, 'round', round)
  end
  prolong(lease, ttl)
  return { now, 1, held[2], held[3] }
end
if KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1 then
  return { now, 2, 0, '' }
end
if held[1] then
  return { now, 0, math.max(0, redis.call('PTTL', lease)), string.sub(redis.sha1hex(held[1]), 1, 16) }
end
local fence = digits(math.max(high + 1, stamp))
create(lease, token, fence, '0', round, ARGV[5], now, ttl)
return { now, 1, fence, '0' }
`,
  },
  heal: {
    name: 'heal',
    sha1: '9ad3dc98353ef454011276bffa0cf206d28bad86',
    source: `-- Gives the node back a lease that it lost and a majority has: same token, same fence. Never one that another took.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] deadline, µs of this server's clock
-- ARGV[3] owner token   ARGV[4] ttl, ms   ARGV[5] instance   ARGV[6] fence
--
-- Returns { now, answer, wait }: 1 healed, 0 taken by another, 3 too late, 5 in quarantine, for \`wait\` ms at least
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
-- A lease on one node, a hash that expires with it:
--   token     its owner's; empty while the key is only kept taken
--   fence     the one it was handed out with, or this node's proposal for it
--   settled   1 when it was told that fence; one that was handed out is settled on a majority
--   round     which claim of its owner's asked for it last: what belongs to an earlier one comes too late
--   instance  who holds it, for people
--   since     when it was granted here, ms
local function create(lease, token, fence, settled, round, instance, granted, ttl)
  redis.call('HSET', lease, 'token', token, 'fence', fence, 'settled', settled, 'round', round,
    'instance', instance, 'since', granted)
  redis.call('PEXPIRE', lease, ttl)
end

-- Never shortens (rule 5).
local function prolong(lease, ttl)
  if redis.call('PTTL', lease) < tonumber(ttl) then
    redis.call('PEXPIRE', lease, ttl)
  end
end
if stamp >= tonumber(ARGV[2]) then
  return { now, 3, 0 }
end
if not votes then
  return { now, 5, wait }
end
local token = redis.call('HGET', KEYS[2], 'token')
if token == ARGV[3] then
  prolong(KEYS[2], ARGV[4])
elseif token then
  return { now, 0, 0 }
else
  -- It is held: nothing is claimed or given back in vain any more.
  create(KEYS[2], ARGV[3], ARGV[6], '1', '9007199254740991', ARGV[5], now, ARGV[4])
  raise(tonumber(ARGV[6]))
end
return { now, 1, 0 }
`,
  },
  inspect: {
    name: 'inspect',
    sha1: '58d48f6c773255141ab3497c62d52cf3746a08df',
    source: `-- What a node knows of a lease. Changes nothing of it.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)
--
-- Returns { now, votes (1, 0), wait } and, when it is not free, token, fence, settled, instance, since and for how many ms more
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
local held = redis.call('HMGET', KEYS[2], 'token', 'fence', 'settled', 'instance', 'since')
if not held[1] then
  return { now, votes and 1 or 0, wait }
end
local left = math.max(0, redis.call('PTTL', KEYS[2]))
return { now, votes and 1 or 0, wait, held[1], held[2], held[3], held[4], held[5], left }
`,
  },
  look: {
    name: 'look',
    sha1: '8d080041b626142edf8453a2c60c96e632bbbdbe',
    source: `-- What the node knows of itself. Begins its quarantine when it was never seen in this run.
--
-- KEYS[1] the node   ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)
--
-- Returns { now, run, votes (1, 0), wait, high, longest }
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
return { now, run, votes and 1 or 0, wait, digits(high), longest }
`,
  },
  release: {
    name: 'release',
    sha1: 'dbc4041bf715e7bf9c4e3019d9ffc6c5f9269f3b',
    source: `-- Frees what is still the token's on this node, and nothing else (rule 7). Also in quarantine, where it counts for nothing.
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)   KEYS[3] the mark of the unit of work, if it is done
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] owner token
-- ARGV[3] keep the key taken for so many ms more, 0 to free it   ARGV[4] remember the mark for so many ms
-- ARGV[5] the round that was in vain, if that is why: a grant to a later one stays. 0 to free any
--
-- Returns { now, answer, wait }: 1 freed, 0 not this token's any more, 5 in quarantine, for \`wait\` ms at least
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
-- A lease on one node, a hash that expires with it:
--   token     its owner's; empty while the key is only kept taken
--   fence     the one it was handed out with, or this node's proposal for it
--   settled   1 when it was told that fence; one that was handed out is settled on a majority
--   round     which claim of its owner's asked for it last: what belongs to an earlier one comes too late
--   instance  who holds it, for people
--   since     when it was granted here, ms
local function create(lease, token, fence, settled, round, instance, granted, ttl)
  redis.call('HSET', lease, 'token', token, 'fence', fence, 'settled', settled, 'round', round,
    'instance', instance, 'since', granted)
  redis.call('PEXPIRE', lease, ttl)
end

-- Never shortens (rule 5).
local function prolong(lease, ttl)
  if redis.call('PTTL', lease) < tonumber(ttl) then
    redis.call('PEXPIRE', lease, ttl)
  end
end
local held = redis.call('HMGET', KEYS[2], 'token', 'fence', 'since', 'round')
local round = tonumber(ARGV[5])
local owned = held[1] == ARGV[2] and (round == 0 or (tonumber(held[4]) or 0) <= round)
if owned then
  if KEYS[3] then
    redis.call('SET', KEYS[3], now, 'PX', ARGV[4])
  end
  if tonumber(ARGV[3]) > 0 then
    create(KEYS[2], '', held[2], '1', '0', '', held[3], ARGV[3])
  else
    redis.call('DEL', KEYS[2])
  end
end
return { now, votes and (owned and 1 or 0) or 5, wait }
`,
  },
  renew: {
    name: 'renew',
    sha1: '14051272fefdda8bf0d904651c7c7774febe3b88',
    source: `-- Prolongs many leases on one node, in one step. Never shortens, never re-creates, never takes (rule 5).
--
-- KEYS[1] the node   KEYS[2] and on: for each hold the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   then for each hold: ttl, ms; owner token
--
-- Returns { now, wait, outcome, … } with one outcome for each hold: 1 renewed, 0 nobody has it here, 4 another has it, 2 no
-- telling. In quarantine there is no telling of any, for \`wait\` ms at least; else \`wait\` is -1
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
-- A lease on one node, a hash that expires with it:
--   token     its owner's; empty while the key is only kept taken
--   fence     the one it was handed out with, or this node's proposal for it
--   settled   1 when it was told that fence; one that was handed out is settled on a majority
--   round     which claim of its owner's asked for it last: what belongs to an earlier one comes too late
--   instance  who holds it, for people
--   since     when it was granted here, ms
local function create(lease, token, fence, settled, round, instance, granted, ttl)
  redis.call('HSET', lease, 'token', token, 'fence', fence, 'settled', settled, 'round', round,
    'instance', instance, 'since', granted)
  redis.call('PEXPIRE', lease, ttl)
end

-- Never shortens (rule 5).
local function prolong(lease, ttl)
  if redis.call('PTTL', lease) < tonumber(ttl) then
    redis.call('PEXPIRE', lease, ttl)
  end
end
local reply = { now, votes and -1 or wait }
for i = 2, #KEYS do
  local ttl, token = ARGV[2 * i - 2], ARGV[2 * i - 1]
  -- A value of another type is nobody else's trouble.
  local owner = redis.pcall('HGET', KEYS[i], 'token')
  if not votes or type(owner) == 'table' then
    reply[i + 1] = 2
  elseif owner == token then
    prolong(KEYS[i], ttl)
    reply[i + 1] = 1
  else
    reply[i + 1] = owner and 4 or 0
  end
end
return reply
`,
  },
  settle: {
    name: 'settle',
    sha1: 'ec27baf8695bd99c4bc43ec1d986de0e85193600',
    source: `-- Tells the node the fence that a lease is handed out with: under ownership, so that whoever gets the key here next gets a
-- higher one (rule 8).
--
-- KEYS[1] the node   KEYS[2] the lease (see parts/lease.lua)
-- ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)   ARGV[2] owner token   ARGV[3] fence   ARGV[4] round
--
-- Returns { now, answer, wait }: 1 settled, 0 not this token's, or of a later round, 5 in quarantine, for \`wait\` ms at least
-- The node itself. KEYS[1] is what it knows of itself, a hash:
--   run       the run of the server that this memory belongs to: another one may have lost what came last, or all
--   since     when that run was first seen, ms
--   longest   the longest ttl that anybody uses here, ms
--   admitted  1 when it votes; else it is in quarantine and grants nothing
--   high      the highest fence that was handed out with its help: the next one is higher, of whatever key (rule 8)
-- ARGV[1] is the longest ttl of who asks, ms; 0 when it wants no quarantine. All times are of this server's clock; nobody
-- else's takes part (rule 3).
local time = redis.call('TIME')
if #time[1] ~= 10 then
  return redis.error_reply('ERR the clock of this server is not set')
end
local stamp = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(stamp / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then
  return redis.error_reply('ERR this server does not tell its run_id')
end
local known = redis.call('HMGET', KEYS[1], 'run', 'since', 'longest', 'admitted', 'high')
local since, longest, high = tonumber(known[2]), tonumber(known[3]) or 0, tonumber(known[5]) or 0
local asked = tonumber(ARGV[1])
local votes = known[4] == '1'
-- A clock that was set back must not prolong a quarantine for as much.
if known[1] ~= run or not since or (not votes and since > now) then
  since, votes = now, asked == 0
  redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'admitted', votes and '1' or '0')
end
if longest < asked then
  longest = asked
  redis.call('HSET', KEYS[1], 'longest', longest)
end
-- For how long it grants nothing yet; 0 when nobody but a majority of the others has to be asked any more.
local wait = votes and 0 or math.max(0, since + longest - now)

local function digits(number)
  return string.format('%.0f', number)
end

local function raise(fence)
  if fence > high then
    redis.call('HSET', KEYS[1], 'high', digits(fence))
  end
end
if not votes then
  return { now, 5, wait }
end
local held = redis.call('HMGET', KEYS[2], 'token', 'fence', 'settled', 'round')
if held[1] ~= ARGV[2] or (tonumber(held[4]) or 0) > tonumber(ARGV[4]) then
  return { now, 0, 0 }
end
local fence = tonumber(ARGV[3])
if held[3] == '1' then
  fence = math.max(fence, tonumber(held[2]))
end
redis.call('HSET', KEYS[2], 'fence', digits(fence), 'settled', '1')
raise(fence)
return { now, 1, 0 }
`,
  },
} satisfies Record<string, LuaScript>;
