-- Takes keys, each for one holder alone who does not wait, or says why not. One atomic step for each (rule 1), many
-- in one round trip. What nearly every claim meets, a key that is known and free, is done without a step too many.
--
-- KEYS    for each claim: the lease (see parts/record.lua)
-- ARGV[1] deadline, µs of this server's clock in 16 digits
-- ARGV    then for each claim: ttl in ms, in 12 digits and at most a tenth of the retention; owner token and instance
--         with a space between
--
-- Returns the fence alone when there is one claim and it is granted. Else { now, answer, figure, … } with an answer
-- and a figure for each claim:
--   1, fence   granted; also when this token holds it already: same fence, ttl from now (rule 2)
--   0, wait    held by others, for `wait` ms at most
--   3, 0       the deadline has passed: nobody waits for this claim any more
--   4, 0       free, but others wait in line: ask with enqueue.lua
--@ include clock
local late = stamp >= ARGV[1]
local reply = { 0 }
for i, lease in ipairs(KEYS) do
  local ttl, owner = ARGV[2 * i], ARGV[2 * i + 1]
  local record = not late and redis.call('GET', lease)
  if record and #record == 16 and record < stamp and not string.find(record, '%D') then
    local held = stamp .. ' ' .. stamp .. ' ' .. ttl .. ' 0000000000000 - ' .. owner
    if string.sub(record, 1, SAME) == string.sub(stamp, 1, SAME) then
      redis.call('SET', lease, held, 'KEEPTTL')
    else
      redis.call('SET', lease, held, 'PX', KEEP)
    end
    if #KEYS == 1 then
      return stamp
    end
    reply[2 * i], reply[2 * i + 1] = 1, stamp
  elseif late then
    reply[2 * i], reply[2 * i + 1] = 3, 0
  else
    --@ include record
    local till = untilOf(record)
    local busy = math.max(till, sharedOf(record))
    if till > now and string.sub(record, 64) == owner then
      local mine = string.sub(record, 1, 16)
      if now + ttl > till then
        write(lease, mine, now + ttl, sharedOf(record), string.sub(record, 62, 62), owner, ttl)
      end
      reply[2 * i], reply[2 * i + 1] = 1, mine
    elseif busy > now then
      reply[2 * i], reply[2 * i + 1] = 0, busy - now
    elseif hasLine(record) then
      reply[2 * i], reply[2 * i + 1] = 4, 0
    else
      local mine = nextFence(record)
      write(lease, mine, now + ttl, 0, '-', owner, ttl)
      reply[2 * i], reply[2 * i + 1] = 1, mine
    end
  end
end
reply[1] = math.floor(tonumber(stamp) / 1000)
return reply
