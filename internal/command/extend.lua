local n = #KEYS
local held = redis.call('MGET', unpack(KEYS))
local out = {}
for i = 1, n do
  if held[i] == ARGV[i] then
    out[i] = redis.call('PEXPIRE', KEYS[i], ARGV[n + i])
  else
    out[i] = 0
  end
end
return out
