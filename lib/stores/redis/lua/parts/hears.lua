-- Whether somebody listens on the channel at this very server; needs told, sets hears. Asked before anything is published: what is
-- published also reaches those who listen at a replica or at another node of the cluster, such as a process that was not
-- told yet of a failover. It would believe in a grant that is given to the next in line, because here nobody heard it.
local there = redis.pcall('PUBSUB', shard and 'SHARDNUMSUB' or 'NUMSUB', channel)
local hears = (tonumber(there[2]) or 0) > 0
