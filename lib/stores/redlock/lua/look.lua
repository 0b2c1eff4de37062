-- What the node knows of itself. Begins its quarantine when it was never seen in this run.
--
-- KEYS[1] the node   ARGV[1] the longest ttl of who asks, ms (see parts/node.lua)
--
-- Returns { now, run, votes (1, 0), wait, high, longest }
--@ include node
return { now, run, votes and 1 or 0, wait, digits(high), longest }
