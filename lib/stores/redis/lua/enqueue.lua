-- Takes a key for one holder alone, or puts the claimant in line, or says that its unit of work is done. One atomic
-- step (rule 1).
--
-- KEYS[1] the lease   KEYS[2] its line   KEYS[3] the mark of the unit of work, if the claim has one
-- ARGV[1] deadline, µs of this server's clock in 16 digits
-- ARGV[2] owner token   ARGV[3] ttl in ms, in 12 digits   ARGV[4] instance   ARGV[5] how it waits (see parts/line.lua), or nothing
--
-- Returns { now, answer, figure }: 1, fence · 0, wait · 3, 0 as acquire.lua; 2, 0 when the unit of work is done
--@ include clock
--@ include record
--@ include line
--@ include claim
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
--@ include enqueue
