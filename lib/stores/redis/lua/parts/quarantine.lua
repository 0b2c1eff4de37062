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
