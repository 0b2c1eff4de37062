-- What is known of a lease, read in one step. Changes nothing.
--
-- KEYS[1] the lease   KEYS[2] its permits   KEYS[3] their holders
--
-- Returns { now, record or '', { token, until, … }, { token, "fence:since:instance", … } }
--@ include clock
return {
  math.floor(tonumber(stamp) / 1000),
  redis.call('GET', KEYS[1]) or '',
  redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'),
  redis.call('HGETALL', KEYS[3]),
}
