-- When a claimant began to wait, as its place in line: `waited` µs before it sent its claim, which was `since` by what its
-- process knows of this server's clock. The claim may have been on its way for long, and those who asked later are not to
-- go first for that; but a process that is wrong about the clock gains a second at most, and nobody stands behind those who
-- come later.
local function began(waited, since)
  local latest = tonumber(stamp) - waited
  return math.max(latest - 1000000, math.min(latest, tonumber(since)))
end
