-- Frees what is still the tokens' alone, and nothing else (rule 7), and gives it to the next in line. Many in one round
-- trip.
--
-- KEYS    for each hold: the lease, its line
-- ARGV    for each hold: owner token and a space
--
-- Returns an outcome when there is one hold, else { outcome, … }: 1 freed, 0 not this token's any more, 2 no telling
local holds, from = #ARGV, 1
--@ include frees
if holds == 1 then
  return freed[1]
end
return freed
