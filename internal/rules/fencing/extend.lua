for i = 1, n do
  local key, ttl = KEYS[i + 1], ARGV[n + i + 1]
  if redis.call('MGET', key)[1] ~= ARGV[i + 1] then
    out[i] = 8
  else
    if redis.call('PTTL', key) < (tonumber(ttl) or math.huge) then redis.call('PEXPIRE', key, ttl) end
    out[i] = 1
  end
end
return out
