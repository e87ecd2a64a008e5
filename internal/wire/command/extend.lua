local n = #KEYS
local held = redis.call('MGET', unpack(KEYS))
local out = {}
for i = 1, n do
  local key, ttl = KEYS[i], ARGV[n + i]
  if held[i] ~= ARGV[i] then
    out[i] = 0
  else
    if redis.call('PTTL', key) < (tonumber(ttl) or math.huge) then redis.call('PEXPIRE', key, ttl) end
    out[i] = 1
  end
end
return out
