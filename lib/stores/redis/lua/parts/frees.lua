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
      --@ include clock
      --@ include head
      if not served then
        --@ include record
        --@ include line
        pass(lease, line, record)
      end
    end
  end
end
