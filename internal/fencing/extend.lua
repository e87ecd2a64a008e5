for i = 1, n do
  local key = KEYS[i + 1]
  if redis.call('MGET', key)[1] == ARGV[i + 1] and redis.call('PEXPIRE', key, ARGV[n + i + 1]) == 1 then
    out[i] = 1
  else
    out[i] = 8
  end
end
return out
