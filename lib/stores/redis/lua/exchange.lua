-- Frees keys, then takes keys, in one round trip: what release.lua and acquire.lua do, in this order, so that a claim
-- behind the release of the same key finds it free.
--
-- KEYS    for each hold that is given back: the lease, its line; then for each claim: the lease
-- ARGV[1] deadline of the claims, µs of this server's clock in 16 digits   ARGV[2] how many holds are given back
-- ARGV    then for each hold: owner token and a space; then for each claim: ttl; owner token and instance
--
-- Returns the fence alone when one was freed and one granted. Else { now, outcome, …, answer, figure, … }
--@ include clock
local holds, from = tonumber(ARGV[2]), 3
--@ include frees
local reply = { 0 }
for i = 1, holds do
  reply[i + 1] = freed[i]
end
local first = 2 * holds + 1
from = from + holds
--@ include takes
if #reply == 4 and holds == 1 and reply[2] == 1 and reply[3] == 1 then
  return reply[4]
end
reply[1] = math.floor(tonumber(stamp) / 1000)
return reply
