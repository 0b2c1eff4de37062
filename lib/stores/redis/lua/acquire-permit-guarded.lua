-- acquire-permit.lua for a store with quarantine: see enqueue-guarded.lua.
--
-- KEYS    as in acquire-permit.lua
-- ARGV    as in acquire-permit.lua; then the last three: see parts/quarantine.lua
--
-- Returns what enqueue-guarded.lua returns
--@ include clock
--@ include record
--@ include line
--@ include permits
if stamp >= ARGV[1] then
  return { now, 3, 0 }
end
--@ include quarantine
--@ include permit
