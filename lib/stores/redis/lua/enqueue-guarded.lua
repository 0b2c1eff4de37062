-- enqueue.lua for a store with quarantine: a server that may have forgotten leases grants nothing for a while.
--
-- KEYS    as in enqueue.lua
-- ARGV    as in enqueue.lua; then the last three: see parts/quarantine.lua
--
-- Returns what enqueue.lua returns, or { now, 5, wait } while the quarantine lasts
--@ include clock
--@ include record
--@ include line
--@ include claim
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
--@ include quarantine
--@ include enqueue
