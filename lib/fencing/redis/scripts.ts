// Generated from lua/*.lua by `npm run lua`. Do not edit.

export interface LuaScript {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}

export const scripts = {
  guard: {
    name: 'guard',
    sha1: 'db36d790b6c4f1109e3fd68f851ac54e8e072a65',
    source: `-- Admits a fence, and goes on with what follows this text only then. What follows has KEYS and ARGV of its own: those
-- behind the ones that are used here.
--
-- KEYS[1] the mark of the resource: the highest fence that was admitted
-- ARGV[1] the fence
-- ARGV[2] the retention in ms, 0 for ever
--
-- Returns { 0, highest } when the fence is stale, { 0, floor, 1 } when there is no mark and it is too old to begin one;
-- else { 1, whatever the rest returns }
local fence, kept = tonumber(ARGV[1]), tonumber(ARGV[2])
local mark = redis.call('GET', KEYS[1])
local highest = tonumber(mark)
if mark and not highest then
  return redis.error_reply('ERR ' .. KEYS[1] .. ' is no mark of nestjs-lease')
end
if highest and fence < highest then
  return { 0, mark }
end
if kept == 0 then
  redis.call('SET', KEYS[1], ARGV[1])
else
  -- The time of this server, which is also the one that forgets.
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local floor = (now - kept / 2) * 1000
  if not mark and fence < floor then
    return { 0, string.format('%.0f', floor), 1 }
  end
  local forget = math.max(now, math.floor(fence / 1000)) + kept
  redis.call('SET', KEYS[1], ARGV[1], 'PXAT', string.format('%.0f', forget))
end
local keys, args = {}, {}
for i = 2, #KEYS do
  keys[i - 1] = KEYS[i]
end
for i = 3, #ARGV do
  args[i - 2] = ARGV[i]
end
`,
  },
} satisfies Record<string, LuaScript>;
