-- Takes a claimant out of the line, and frees the key if it was granted to it in the meantime. A turn that it was
-- told of and does not take goes to the next.
--
-- KEYS[1] the lease   KEYS[2] its line
-- ARGV[1] owner token   ARGV[2] its place in line
--
-- Returns 1 when it held the key, 0 when it did not
--@ include clock
--@ include record
--@ include line
--@ include permits
local stood = redis.call('ZREM', KEYS[2], ARGV[2]) == 1
local record = redis.call('GET', KEYS[1])
local busy = untilOf(record) > now
local held = busy and owns(record, ARGV[1])
local free = not busy and sharedOf(record) <= now
if held or free and hasLine(record) then
  pass(KEYS[1], KEYS[2], record)
elseif not busy and not stood then
  tell(KEYS[2])
end
return held and 1 or 0
