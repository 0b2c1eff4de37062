-- Takes keys, each for one holder alone who does not wait, or says why not. Many in one round trip.
--
-- KEYS    for each claim: the lease (see parts/record.lua)
-- ARGV[1] deadline, µs of this server's clock in 16 digits
-- ARGV    then for each claim: ttl; owner token and instance (see parts/takes.lua)
--
-- Returns the fence alone when there is one claim and it is granted. Else { now, answer, figure, … } with an answer and a
-- figure for each claim, as parts/takes.lua says
--@ include clock
local reply, first, from = { 0 }, 1, 2
--@ include takes
if #KEYS == 1 and reply[2] == 1 then
  return reply[3]
end
reply[1] = math.floor(tonumber(stamp) / 1000)
return reply
