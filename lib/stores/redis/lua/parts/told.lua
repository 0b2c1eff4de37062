-- How those who listen on `channel` are told. One with a hash tag lies in the slot of the lease: what is published there
-- stays with the nodes of a cluster that have the slot. Another is carried to all of them. Sets shard and publish.
local shard = string.find(channel, '{', 1, true)
local publish = shard and 'SPUBLISH' or 'PUBLISH'
