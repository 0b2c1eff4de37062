-- What is known of a lease, read in one step. Changes nothing.
--
-- KEYS[1] the lease   KEYS[2] its permits
--
-- Returns { now, { field, value, … } of the lease, { member, until, … } of its permits }
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
return { now, redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES') }
