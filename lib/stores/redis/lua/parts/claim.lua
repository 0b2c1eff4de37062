-- One claim for a key alone. `waits` is empty, or a refusal puts the claimant in line.
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
