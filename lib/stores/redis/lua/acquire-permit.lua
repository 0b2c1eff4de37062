-- Takes one of several permits of a key, or says why not. One atomic step (rule 1).
--
-- Holders of permits are members of a sorted set: token, scored by until; `kept:<fence>` for a permit that stays
-- taken after its release. Their "fence:since:instance" is in a hash, by token. A holder that has the key alone is
-- respected, and respects the `shared` field of the record.
--
-- KEYS[1] the lease   KEYS[2] its line   KEYS[3] its permits   KEYS[4] their holders
-- KEYS[5] the mark of the unit of work, if the claim has one
-- ARGV    as in enqueue.lua; then ARGV[6] how many may hold it, this claim included
--
-- Returns what enqueue.lua returns.
--@ include clock
--@ include record
--@ include line
--@ include permits
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
--@ include permit
