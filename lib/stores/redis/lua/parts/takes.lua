-- Takes keys, each for one holder alone who does not wait, or says why not; one atomic step for each (rule 1). What
-- nearly every claim meets, a key that is known and free, is done without a step too many. Needs first, where the leases
-- begin in KEYS, and from, where in ARGV: for each a ttl in ms, in 12 digits and at most a tenth of the retention; owner
-- token and instance with a space between. ARGV[1] is the deadline, µs of this server's clock in 16 digits. Adds to reply,
-- for each claim, an answer and a figure:
--   1, fence   granted; also when this token holds it already: same fence, ttl from now (rule 2)
--   0, wait    held by others, for `wait` ms at most
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
    --@ include record
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
